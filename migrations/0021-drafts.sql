alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check
  check (kind in ('message', 'file', 'media', 'reaction', 'join', 'leave', 'profile', 'draft', 'withdrawal'));

-- A turn that does not end by itself takes back its drafts.
create index outbox_drafts on outbox (turn_id) where kind = 'draft';
