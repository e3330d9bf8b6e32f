-- +goose Up

-- Browsers whose user has logged in to the console. What a browser sends is kept as its
-- digest only: whoever reads the table can't be anybody in it.
CREATE TABLE browser_sessions (
    id         TEXT COLLATE "C" PRIMARY KEY, -- stays when the token is exchanged
    token      TEXT COLLATE "C" NOT NULL UNIQUE, -- its SHA-256
    attempt    TEXT COLLATE "C" NOT NULL UNIQUE, -- the SHA-256 of the login's state: one login makes one session
    subject    TEXT COLLATE "C" NOT NULL, -- who, as the identity provider knows them for good
    name       TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,
    "groups"   TEXT COLLATE "C" NOT NULL, -- a JSON list
    client     TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at   BIGINT NOT NULL -- 0: it wasn't ended
);
CREATE INDEX browser_sessions_started ON browser_sessions (started_at) WHERE ended_at = 0;
