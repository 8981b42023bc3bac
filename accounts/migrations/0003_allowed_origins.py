"""Origins are written into a security header: the database takes nothing that could end one."""

from django.db import migrations

FORWARD = r"""
ALTER TABLE accounts_shop ADD CONSTRAINT shop_allowed_origins_valid
    CHECK (array_to_string(allowed_origins, ' ') ~ '^(https?://[][a-z0-9._:-]+( |$))*$');
"""

REVERSE = "ALTER TABLE accounts_shop DROP CONSTRAINT shop_allowed_origins_valid;"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_policy_version")]

    operations = [migrations.RunSQL(FORWARD, REVERSE)]
