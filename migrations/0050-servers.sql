-- Tools of other servers (MCP), as they describe them.
create table server_tools (
  -- Name of the server in config.yaml.
  server text not null,
  -- Name of the tool, behind that of its server.
  name text not null,
  -- Definition that models are offered; null: nobody has accepted one yet.
  accepted jsonb,
  -- Definition that the server gave last; null: it has no such tool any more. Another than the accepted one is withheld.
  seen jsonb,
  primary key (server, name)
);
