-- +goose Up

-- Times are microseconds since 1970, 0 for none. 9223372036854775807 is never.
-- Text sorts by its bytes (collation C), as it does in SQLite.

-- The database's clock: every lease and every due time is judged by it, so that
-- the replicas' clocks need not agree. Stable within a statement, so that an
-- index can be searched with it.
-- +goose StatementBegin
CREATE FUNCTION liftlock_now() RETURNS BIGINT LANGUAGE sql STABLE AS
$$ SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint $$;
-- +goose StatementEnd

-- Webhook deliveries that were acknowledged: each is taken once.
CREATE TABLE deliveries (
    forge       TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    event       TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    keys        TEXT COLLATE "C" NOT NULL, -- JSON list of the keys that it woke
    received_at BIGINT NOT NULL,
    PRIMARY KEY (forge, id)
);
CREATE INDEX deliveries_received ON deliveries (received_at);

-- A row a key. gen counts the claims and tells a run from one that lost its
-- lease. A claim clears due_at (never): what is there when the run ends was
-- requested since it began.
CREATE TABLE wakes (
    key         TEXT COLLATE "C" PRIMARY KEY,
    gen         BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT NOT NULL,
    not_before  BIGINT NOT NULL DEFAULT 0,
    owner       TEXT COLLATE "C" NOT NULL DEFAULT '',
    lease_until BIGINT NOT NULL DEFAULT 0,
    ended_at    BIGINT NOT NULL DEFAULT 0,
    fails       BIGINT NOT NULL DEFAULT 0,
    urgency     BIGINT NOT NULL DEFAULT 0, -- the smaller the more: a key is claimed before those that are less urgent, however long they have been due
    -- when the key can be claimed
    ready_at    BIGINT GENERATED ALWAYS AS (CASE WHEN owner = '' THEN greatest(due_at, not_before) ELSE lease_until END) STORED
);
CREATE INDEX wakes_ready ON wakes (ready_at);
CREATE INDEX wakes_urgent ON wakes (urgency, ready_at);

-- A copy of what the forge has of pull requests. They are found by what they are about,
-- so that a look costs what is open and near, and not what there ever was.
CREATE TABLE pulls (
    repo         TEXT COLLATE "C" NOT NULL,
    number       BIGINT NOT NULL,
    branch       TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    pipeline     TEXT COLLATE "C" NOT NULL,
    environment  TEXT COLLATE "C" NOT NULL,
    component    TEXT COLLATE "C" NOT NULL,
    revert       BIGINT NOT NULL, -- 1: of a revert
    author       TEXT COLLATE "C" NOT NULL,
    head         TEXT COLLATE "C" NOT NULL,
    merge_commit TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    closed_at    BIGINT NOT NULL, -- 0 while it is open
    updated_at   BIGINT NOT NULL,
    version      BIGINT NOT NULL, -- rises with every write
    rules        TEXT COLLATE "C" NOT NULL, -- by which what it moved was worked out (past_pulls); empty: open, or not yet
    data         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, number)
);
CREATE INDEX pulls_place ON pulls (repo, pipeline, component, rules);
CREATE INDEX pulls_open ON pulls (repo, branch) WHERE closed_at = 0;
CREATE INDEX pulls_head ON pulls (repo, head, number);
CREATE INDEX pulls_merge ON pulls (repo, merge_commit, number) WHERE merge_commit <> '';
CREATE INDEX pulls_closed ON pulls (repo, pipeline, closed_at);
CREATE INDEX pulls_reverts ON pulls (repo, pipeline, created_at) WHERE revert = 1;

-- Up to when a repository's pull requests were read.
CREATE TABLE pull_cursors (
    repo    TEXT COLLATE "C" PRIMARY KEY,
    read_to BIGINT NOT NULL
);

-- What closed pull requests moved, a row a component. One that we replaced has none.
CREATE TABLE past_pulls (
    repo          TEXT COLLATE "C" NOT NULL,
    number        BIGINT NOT NULL,
    component     TEXT COLLATE "C" NOT NULL,
    pipeline      TEXT COLLATE "C" NOT NULL,
    environment   TEXT COLLATE "C" NOT NULL,
    branch_of     TEXT COLLATE "C" NOT NULL, -- the component that its branch names
    kind          BIGINT NOT NULL, -- PastKind
    release_id    TEXT COLLATE "C" NOT NULL,
    short_release TEXT COLLATE "C" NOT NULL, -- of release_id; empty: unknown
    batch_release TEXT COLLATE "C" NOT NULL, -- short, of all that it moved
    at            BIGINT NOT NULL,
    commit_id     TEXT COLLATE "C" NOT NULL,
    by_login      TEXT COLLATE "C" NOT NULL,
    rules         TEXT COLLATE "C" NOT NULL,
    version       BIGINT NOT NULL, -- of the row in pulls
    PRIMARY KEY (repo, number, component)
);
CREATE INDEX past_pulls_newest ON past_pulls (repo, pipeline, component, environment, kind, at);
CREATE INDEX past_pulls_merged ON past_pulls (repo, pipeline, component, short_release) WHERE kind = 0;
CREATE INDEX past_pulls_restraints ON past_pulls (repo, pipeline, component, short_release) WHERE kind > 0;
CREATE INDEX past_pulls_batch ON past_pulls (repo, pipeline, branch_of, environment, batch_release, number) WHERE kind = 0;

-- A component of a pipeline, as its last look found it.
CREATE TABLE units (
    key        TEXT COLLATE "C" PRIMARY KEY,
    repo       TEXT COLLATE "C" NOT NULL,
    pipeline   TEXT COLLATE "C" NOT NULL,
    component  TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    data       TEXT COLLATE "C" NOT NULL
);
CREATE INDEX units_pipeline ON units (pipeline, repo);
CREATE INDEX units_repo ON units (repo);

-- A release that arrived in an environment. A row stays for as long as its unit: what was degraded
-- or reverted is so however much arrives later. recent has the newest of each environment, which
-- every look reads.
CREATE TABLE arrivals (
    unit         TEXT COLLATE "C" NOT NULL,
    environment  TEXT COLLATE "C" NOT NULL,
    commit_id    TEXT COLLATE "C" NOT NULL,
    release_id   TEXT COLLATE "C" NOT NULL,
    seq          BIGINT NOT NULL,
    at           BIGINT NOT NULL,
    verified_at  BIGINT NOT NULL,
    degraded_at  BIGINT NOT NULL,
    withdrawn_at BIGINT NOT NULL DEFAULT 0,
    recent       BIGINT NOT NULL DEFAULT 1,
    data         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (unit, environment, commit_id, release_id)
);
CREATE UNIQUE INDEX arrivals_seq ON arrivals (unit, seq);
-- A commit status of a commit that landed finds whose release it brought.
CREATE INDEX arrivals_commit ON arrivals (commit_id, unit);
CREATE INDEX arrivals_recent ON arrivals (unit, environment, seq) WHERE recent = 1;
CREATE INDEX arrivals_release ON arrivals (unit, release_id, environment, seq);

-- What was seen of a target last.
CREATE TABLE observations (
    unit        TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    target      TEXT COLLATE "C" NOT NULL,
    data        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (unit, environment, target)
);

-- Commands of people that wait to take effect, or have.
CREATE TABLE pending_commands (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    unit        TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    verb        TEXT COLLATE "C" NOT NULL,
    release_id  TEXT COLLATE "C" NOT NULL,
    by_login    TEXT COLLATE "C" NOT NULL,
    by_id       BIGINT NOT NULL DEFAULT 0, -- the account's number, which stays when its login is changed; 0: not known
    reason      TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    at          BIGINT NOT NULL,
    done_at     BIGINT NOT NULL,
    outcome     TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX pending_commands_source ON pending_commands (source) WHERE source <> '';
CREATE INDEX pending_commands_open ON pending_commands (unit, id) WHERE done_at = 0;
CREATE INDEX pending_commands_done ON pending_commands (done_at);

-- What is promoted and reverted, by pull request. One that moves several components has a row for each.
CREATE TABLE promotions (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    unit        TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    pipeline    TEXT COLLATE "C" NOT NULL,
    component   TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    release_id  TEXT COLLATE "C" NOT NULL,
    pull        BIGINT NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    data        TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX promotions_pull ON promotions (repo, pull, unit) WHERE pull > 0;
CREATE INDEX promotions_place ON promotions (pipeline, component, environment, id);
CREATE INDEX promotions_repo ON promotions (repo, id);
CREATE INDEX promotions_state ON promotions (state, id);

-- What happened, for people and their tools.
CREATE TABLE events (
    seq             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              BIGINT NOT NULL,
    repo            TEXT COLLATE "C" NOT NULL,
    pipeline        TEXT COLLATE "C" NOT NULL,
    component       TEXT COLLATE "C" NOT NULL,
    environment     TEXT COLLATE "C" NOT NULL,
    pull            BIGINT NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    message         TEXT COLLATE "C" NOT NULL,
    data            TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX events_idempotency ON events (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX events_place ON events (pipeline, component, seq);
CREATE INDEX events_pull ON events (repo, pull, seq);
CREATE INDEX events_at ON events (at);

-- Who did what.
CREATE TABLE audit (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          BIGINT NOT NULL,
    actor       TEXT COLLATE "C" NOT NULL,
    via         TEXT COLLATE "C" NOT NULL,
    verb        TEXT COLLATE "C" NOT NULL,
    subject     TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL DEFAULT '', -- that a command was about; empty: several
    reason      TEXT COLLATE "C" NOT NULL,
    outcome     TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    data        TEXT COLLATE "C" NOT NULL DEFAULT '' -- what an entry is about in full, as JSON, such as what a merge was judged by; empty: nothing
);
CREATE UNIQUE INDEX audit_source ON audit (source) WHERE source <> '';
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_environment ON audit (environment, id);

-- Places of which only one process holds each.
CREATE TABLE slots (
    name        TEXT COLLATE "C" PRIMARY KEY,
    owner       TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL
);

-- Which components want to merge in a repository, first come first served.
CREATE TABLE merge_queue (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    UNIQUE (repo, unit)
);
CREATE INDEX merge_queue_unit ON merge_queue (unit);

-- Small values of a kind each; internal/store/record/README.md has every kind.
CREATE TABLE records (
    kind TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL, -- empty: about no repository
    pull BIGINT NOT NULL, -- 0: about no pull request
    name TEXT COLLATE "C" NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (kind, repo, pull, name)
);

-- Which state of a component's history is stored: whoever keeps a copy of it
-- compares. It is raised with each change, and is at least the time in microseconds.
CREATE TABLE history_versions (
    scope   TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- whose: its arrivals, or its closed pull requests
    version BIGINT NOT NULL
);

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
    accounts   TEXT COLLATE "C" NOT NULL DEFAULT '', -- the user's logins on the forges, a JSON object; empty: none is known
    client     TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at   BIGINT NOT NULL -- 0: it wasn't ended
);
CREATE INDEX browser_sessions_started ON browser_sessions (started_at) WHERE ended_at = 0;
