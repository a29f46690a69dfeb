from django.test import Client

from accounts.models import User


def logged_in_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
