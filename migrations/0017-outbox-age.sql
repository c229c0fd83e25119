-- A row may be tried from the moment it is queued on: `created_at` tells how long a homeserver has had to remember it.
alter table outbox drop column first_tried_at;
