"""The warnings and errors that are fastdp's own."""


class DomainError(ValueError):
    """A record or value lies outside the declared domain. Raised before any noise is drawn; never shows the value."""


class PrivacyWarning(UserWarning):
    """Something was done that weakens privacy."""


class AccuracyWarning(UserWarning):
    """Something was done that costs accuracy."""
