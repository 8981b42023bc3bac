from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0011_second_factor")]

    operations = [
        migrations.AddField(
            model_name="shop",
            name="keep_texts_days",
            field=models.PositiveIntegerField(
                db_default=730,
                default=730,
                help_text="Days after a ticket's last change in which its texts are kept; 0 keeps them for ever.",
            ),
        ),
    ]
