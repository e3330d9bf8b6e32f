-- +goose Up

-- Times are microseconds since 1970, 0 for none. 9223372036854775807 is never.

-- Webhook deliveries that were acknowledged: each is taken once.
CREATE TABLE deliveries (
    forge       TEXT NOT NULL,
    id          TEXT NOT NULL,
    event       TEXT NOT NULL,
    repo        TEXT NOT NULL,
    keys        TEXT NOT NULL, -- JSON list of the keys that it woke
    received_at INTEGER NOT NULL,
    PRIMARY KEY (forge, id)
) STRICT;
CREATE INDEX deliveries_received ON deliveries (received_at);

-- A row a key. gen counts the claims and tells a run from one that lost its
-- lease. A claim clears due_at (never): what is there when the run ends was
-- requested since it began.
CREATE TABLE wakes (
    key         TEXT PRIMARY KEY,
    gen         INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL,
    not_before  INTEGER NOT NULL DEFAULT 0,
    owner       TEXT NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0,
    ended_at    INTEGER NOT NULL DEFAULT 0,
    fails       INTEGER NOT NULL DEFAULT 0,
    urgency     INTEGER NOT NULL DEFAULT 0, -- the smaller the more: a key is claimed before those that are less urgent, however long they have been due
    -- when the key can be claimed
    ready_at    INTEGER GENERATED ALWAYS AS (CASE WHEN owner = '' THEN max(due_at, not_before) ELSE lease_until END) VIRTUAL
) STRICT;
CREATE INDEX wakes_ready ON wakes (ready_at);
CREATE INDEX wakes_urgent ON wakes (urgency, ready_at);

-- A copy of what the forge has of pull requests. They are found by what they are about,
-- so that a look costs what is open and near, and not what there ever was.
CREATE TABLE pulls (
    repo         TEXT NOT NULL,
    number       INTEGER NOT NULL,
    branch       TEXT NOT NULL,
    state        TEXT NOT NULL,
    pipeline     TEXT NOT NULL,
    environment  TEXT NOT NULL,
    component    TEXT NOT NULL,
    revert       INTEGER NOT NULL, -- 1: of a revert
    author       TEXT NOT NULL,
    head         TEXT NOT NULL,
    merge_commit TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    closed_at    INTEGER NOT NULL, -- 0 while it is open
    updated_at   INTEGER NOT NULL,
    version      INTEGER NOT NULL, -- rises with every write
    rules        TEXT NOT NULL, -- by which what it moved was worked out (past_pulls); empty: open, or not yet
    data         TEXT NOT NULL,
    PRIMARY KEY (repo, number)
) STRICT;
CREATE INDEX pulls_place ON pulls (repo, pipeline, component, rules);
CREATE INDEX pulls_open ON pulls (repo, branch) WHERE closed_at = 0;
CREATE INDEX pulls_head ON pulls (repo, head, number);
CREATE INDEX pulls_merge ON pulls (repo, merge_commit, number) WHERE merge_commit <> '';
CREATE INDEX pulls_closed ON pulls (repo, pipeline, closed_at);
CREATE INDEX pulls_reverts ON pulls (repo, pipeline, created_at) WHERE revert = 1;

-- Up to when a repository's pull requests were read.
CREATE TABLE pull_cursors (
    repo    TEXT PRIMARY KEY,
    read_to INTEGER NOT NULL
) STRICT;

-- What closed pull requests moved, a row a component. One that we replaced has none.
CREATE TABLE past_pulls (
    repo          TEXT NOT NULL,
    number        INTEGER NOT NULL,
    component     TEXT NOT NULL,
    pipeline      TEXT NOT NULL,
    environment   TEXT NOT NULL,
    branch_of     TEXT NOT NULL, -- the component that its branch names
    kind          INTEGER NOT NULL, -- PastKind
    release_id    TEXT NOT NULL,
    short_release TEXT NOT NULL, -- of release_id; empty: unknown
    batch_release TEXT NOT NULL, -- short, of all that it moved
    at            INTEGER NOT NULL,
    commit_id     TEXT NOT NULL,
    by_login      TEXT NOT NULL,
    rules         TEXT NOT NULL,
    version       INTEGER NOT NULL, -- of the row in pulls
    PRIMARY KEY (repo, number, component)
) STRICT;
CREATE INDEX past_pulls_newest ON past_pulls (repo, pipeline, component, environment, kind, at);
CREATE INDEX past_pulls_merged ON past_pulls (repo, pipeline, component, short_release) WHERE kind = 0;
CREATE INDEX past_pulls_restraints ON past_pulls (repo, pipeline, component, short_release) WHERE kind > 0;
CREATE INDEX past_pulls_batch ON past_pulls (repo, pipeline, branch_of, environment, batch_release, number) WHERE kind = 0;

-- A component of a pipeline, as its last look found it.
CREATE TABLE units (
    key        TEXT PRIMARY KEY,
    repo       TEXT NOT NULL,
    pipeline   TEXT NOT NULL,
    component  TEXT NOT NULL,
    digest     TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    data       TEXT NOT NULL
) STRICT;
CREATE INDEX units_pipeline ON units (pipeline, repo);
CREATE INDEX units_repo ON units (repo);

-- A release that arrived in an environment. A row stays for as long as its unit: what was degraded
-- or reverted is so however much arrives later. recent has the newest of each environment, which
-- every look reads.
CREATE TABLE arrivals (
    unit         TEXT NOT NULL,
    environment  TEXT NOT NULL,
    commit_id    TEXT NOT NULL,
    release_id   TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    verified_at  INTEGER NOT NULL,
    degraded_at  INTEGER NOT NULL,
    withdrawn_at INTEGER NOT NULL DEFAULT 0,
    recent       INTEGER NOT NULL DEFAULT 1,
    data         TEXT NOT NULL,
    PRIMARY KEY (unit, environment, commit_id, release_id)
) STRICT;
CREATE UNIQUE INDEX arrivals_seq ON arrivals (unit, seq);
-- A commit status of a commit that landed finds whose release it brought.
CREATE INDEX arrivals_commit ON arrivals (commit_id, unit);
CREATE INDEX arrivals_recent ON arrivals (unit, environment, seq) WHERE recent = 1;
CREATE INDEX arrivals_release ON arrivals (unit, release_id, environment, seq);

-- What was seen of a target last.
CREATE TABLE observations (
    unit        TEXT NOT NULL,
    environment TEXT NOT NULL,
    target      TEXT NOT NULL,
    data        TEXT NOT NULL,
    PRIMARY KEY (unit, environment, target)
) STRICT;

-- Commands of people that wait to take effect, or have.
CREATE TABLE pending_commands (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    unit        TEXT NOT NULL,
    environment TEXT NOT NULL,
    verb        TEXT NOT NULL,
    release_id  TEXT NOT NULL,
    by_login    TEXT NOT NULL,
    by_id       INTEGER NOT NULL DEFAULT 0, -- the account's number, which stays when its login is changed; 0: not known
    reason      TEXT NOT NULL,
    source      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    done_at     INTEGER NOT NULL,
    outcome     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX pending_commands_source ON pending_commands (source) WHERE source <> '';
CREATE INDEX pending_commands_open ON pending_commands (unit, id) WHERE done_at = 0;
CREATE INDEX pending_commands_done ON pending_commands (done_at);

-- What is promoted and reverted, by pull request. One that moves several components has a row for each.
CREATE TABLE promotions (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    unit        TEXT NOT NULL,
    repo        TEXT NOT NULL,
    pipeline    TEXT NOT NULL,
    component   TEXT NOT NULL,
    environment TEXT NOT NULL,
    kind        TEXT NOT NULL,
    release_id  TEXT NOT NULL,
    pull        INTEGER NOT NULL,
    state       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    data        TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX promotions_pull ON promotions (repo, pull, unit) WHERE pull > 0;
CREATE INDEX promotions_place ON promotions (pipeline, component, environment, id);
CREATE INDEX promotions_repo ON promotions (repo, id);
CREATE INDEX promotions_state ON promotions (state, id);

-- What happened, for people and their tools.
CREATE TABLE events (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    at              INTEGER NOT NULL,
    repo            TEXT NOT NULL,
    pipeline        TEXT NOT NULL,
    component       TEXT NOT NULL,
    environment     TEXT NOT NULL,
    pull            INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    message         TEXT NOT NULL,
    data            TEXT NOT NULL,
    idempotency_key TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_idempotency ON events (idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX events_place ON events (pipeline, component, seq);
CREATE INDEX events_pull ON events (repo, pull, seq);
CREATE INDEX events_at ON events (at);

-- Who did what.
CREATE TABLE audit (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    via         TEXT NOT NULL,
    verb        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    environment TEXT NOT NULL DEFAULT '', -- that a command was about; empty: several
    reason      TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    source      TEXT NOT NULL,
    data        TEXT NOT NULL DEFAULT '' -- what an entry is about in full, as JSON, such as what a merge was judged by; empty: nothing
) STRICT;
CREATE UNIQUE INDEX audit_source ON audit (source) WHERE source <> '';
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_environment ON audit (environment, id);

-- Places of which only one process holds each.
CREATE TABLE slots (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

-- Which components want to merge in a repository, first come first served.
CREATE TABLE merge_queue (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    repo TEXT NOT NULL,
    unit TEXT NOT NULL,
    UNIQUE (repo, unit)
) STRICT;
CREATE INDEX merge_queue_unit ON merge_queue (unit);

-- Small values of a kind each; internal/store/record/README.md has every kind.
CREATE TABLE records (
    kind TEXT NOT NULL,
    repo TEXT NOT NULL, -- empty: about no repository
    pull INTEGER NOT NULL, -- 0: about no pull request
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (kind, repo, pull, name)
) STRICT;

-- Which state of a component's history is stored: whoever keeps a copy of it
-- compares. It is raised with each change, and is at least the time in microseconds.
CREATE TABLE history_versions (
    scope   TEXT NOT NULL PRIMARY KEY, -- whose: its arrivals, or its closed pull requests
    version INTEGER NOT NULL
) STRICT;

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
    accounts   TEXT NOT NULL DEFAULT '', -- the user's logins on the forges, a JSON object; empty: none is known
    client     TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL -- 0: it wasn't ended
) STRICT, WITHOUT ROWID;
CREATE INDEX browser_sessions_started ON browser_sessions (started_at) WHERE ended_at = 0;
