-- When something that runs in the background, or an open port, was last seen in a sandbox: until then it was no idle one.
alter table sandboxes add column busy_at timestamptz;
