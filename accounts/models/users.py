"""Users, who log in by e-mail."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Lower

from core.models.base import BaseModel


class UserManager(BaseUserManager["User"]):
    """Creates users by e-mail; Django's commands call these two methods."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        # Whoever can create a superuser vouches for the e-mail address.
        fields = {"is_staff": True, "is_superuser": True, "email_verified": True} | fields
        return self.create_user(email, password, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(BaseModel, AbstractBaseUser, PermissionsMixin):
    """A user. The e-mail, always in lower case, is the login name."""

    email = models.EmailField("e-mail", max_length=254, unique=True)
    email_verified = models.BooleanField(default=False)
    pending_email = models.EmailField(
        max_length=254, blank=True, help_text="asked for, and not verified yet"
    )
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    second_factor_required = models.BooleanField(
        default=False, help_text="refused everything but setting one up until there is one"
    )
    settings = models.JSONField(default=dict, blank=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(email=Lower("email")), name="user_email_lower_case"
            ),
        )

    def __str__(self) -> str:
        return self.email
