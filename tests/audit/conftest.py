from tests.audit_flush import django_db_setup

__all__ = ["django_db_setup"]
