"""Serializers of errors."""

from typing import Any

from rest_framework import serializers


class ErrorDetailSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable; for programs.")
    message = serializers.CharField(help_text="A sentence that says what to do.")
    fields = serializers.DictField(  # type: ignore[assignment]  # the API's name for it
        child=serializers.ListField(child=serializers.CharField()), required=False
    )


class ErrorSerializer(serializers.Serializer[Any]):
    """The body of every error response."""

    error = ErrorDetailSerializer()
    request_id = serializers.CharField(help_text="Also in the X-Request-ID header.")
