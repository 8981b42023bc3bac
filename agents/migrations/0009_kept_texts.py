"""Finds the oldest tickets that still have words, however many have none."""

from django.db import migrations

FORWARD = """
CREATE INDEX ticket_with_words ON agents_ticket (shop_id, updated_at) WHERE subject <> '[erased]';
"""
BACKWARD = "DROP INDEX ticket_with_words;"


class Migration(migrations.Migration):
    dependencies = [("agents", "0008_step_needs"), ("accounts", "0012_keep_texts_days")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
