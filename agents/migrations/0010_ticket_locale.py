from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0009_kept_texts")]

    operations = [
        migrations.AddField(
            model_name="ticket",
            name="locale",
            field=models.CharField(blank=True, db_default="", default="", max_length=20),
        ),
    ]
