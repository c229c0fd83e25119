-- Devices of agents for encrypted rooms. Whoever opens one raises its epoch; a process with an older one cannot write.
create table crypto_machines (
  user_id text primary key,
  device_id text not null,
  epoch bigint not null default 0,
  -- Process that has it open. It is waited for as long as it lives, for a moment: the epoch is what protects.
  owner text,
  -- Up to where messages to the device were taken from the homeserver, once they are stored.
  since text,
  pulled_at timestamptz,
  -- The homeserver has the device's keys and the identity that signs them.
  published_at timestamptz,
  -- The identity's private keys: a device that is made anew is signed with them. The only part that dumps hold.
  identity jsonb,
  -- When the device was made in place of an older one.
  renewed_at timestamptz
);

-- Memory of the devices: keys, sessions, other people's devices. It may never go back in time.
create table crypto_rows (
  user_id text not null,
  store text not null,
  key text not null,
  value text not null,
  primary key (user_id, store, key)
);

-- The encrypted form of a message, made once: what is sent again is the same.
alter table outbox add column wire jsonb;
-- Key and hash of a file that was encrypted before it was uploaded.
alter table uploads add column cipher jsonb;

-- Of an event that came encrypted and was read: a digest of its ciphertext, which no other event may have.
alter table events add column cipher text;
create index events_cipher on events (cipher) where cipher is not null;

-- Encrypted events that nobody of ours can read yet. They are routed again when their key comes.
create table sealed_events (
  event_id text primary key,
  room_id text not null,
  session_id text not null,
  -- Who looks for the key.
  user_id text not null,
  reason text not null,
  since timestamptz not null default now()
);
create index sealed_events_session on sealed_events (room_id, session_id);
create index sealed_events_user on sealed_events (user_id);
