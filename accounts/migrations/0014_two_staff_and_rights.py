"""A second limit, above which two of staff are asked, and how far each one's right to approve reaches.

A change of the second limit is a change of policy; raising or removing it takes two people, whoever
writes the row.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

FORWARD = """
CREATE FUNCTION accounts_shop_second_limit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.policy_version := GREATEST(NEW.policy_version, OLD.policy_version + 1);
  IF OLD.second_limit IS NOT NULL
     AND (NEW.second_limit IS NULL OR NEW.second_limit > OLD.second_limit) THEN
    UPDATE accounts_shopchange SET applied_at = clock_timestamp()
      WHERE shop_id = NEW.id AND setting = 'second_limit' AND status = 'confirmed'
        AND applied_at IS NULL AND old_value = to_jsonb(OLD) -> 'second_limit'
        AND new_value = to_jsonb(NEW) -> 'second_limit';
    IF NOT FOUND THEN
      RAISE EXCEPTION 'loosening second_limit of shop % takes two people', NEW.slug
        USING ERRCODE = 'restrict_violation';
    END IF;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER accounts_shop_second_limit BEFORE UPDATE ON accounts_shop
  FOR EACH ROW WHEN (OLD.second_limit IS DISTINCT FROM NEW.second_limit)
  EXECUTE FUNCTION accounts_shop_second_limit();
"""

REVERSE = """
DROP TRIGGER accounts_shop_second_limit ON accounts_shop;
DROP FUNCTION accounts_shop_second_limit();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0013_looks")]

    operations = [
        migrations.AddField(
            model_name="shop",
            name="second_limit",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="Refunds above this need two of staff (minor units); empty: none do.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="approve_kinds",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=20),
                blank=True,
                help_text="What they may decide about; none chosen: everything.",
                null=True,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="approve_up_to",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="The largest sum that they may say yes to (minor units); empty: any.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("approve_kinds__isnull", True),
                    (
                        "approve_kinds__contained_by",
                        ["refund", "cancel", "change_address", "close_ticket"],
                    ),
                    _connector="OR",
                ),
                name="user_approves_known_kinds",
            ),
        ),
        migrations.RunSQL(FORWARD, REVERSE),
    ]
