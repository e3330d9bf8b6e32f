-- +goose Up

-- Browsers whose user has logged in to the console. What a browser sends is kept as its
-- digest only: whoever reads the table can't be anybody in it.
CREATE TABLE browser_sessions (
    id         TEXT PRIMARY KEY, -- stays when the token is exchanged
    token      TEXT NOT NULL UNIQUE, -- its SHA-256
    attempt    TEXT NOT NULL UNIQUE, -- the SHA-256 of the login's state: one login makes one session
    subject    TEXT NOT NULL, -- who, as the identity provider knows them for good
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    "groups"   TEXT NOT NULL, -- a JSON list
    client     TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL -- 0: it wasn't ended
) STRICT, WITHOUT ROWID;
CREATE INDEX browser_sessions_started ON browser_sessions (started_at) WHERE ended_at = 0;
