-- +goose Up

-- What the schema was made by. Each migration notes itself.
CREATE TABLE migrations (
	version INTEGER PRIMARY KEY,
	hash    TEXT NOT NULL -- of its text, without comments and spaces
) STRICT;

-- One row. The generation grows with each member that comes or goes.
CREATE TABLE cluster (
	one        INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
	name       TEXT, -- NULL until the first member joins
	values_at  TEXT NOT NULL DEFAULT '', -- where large values are kept; '' = they are in here
	secret     TEXT, -- NULL until somebody asks for it
	generation INTEGER NOT NULL DEFAULT 0,
	format     INTEGER NOT NULL DEFAULT 0, -- that journals are written in; 0 = there are none
	history    TEXT NOT NULL DEFAULT (hex(randomblob(16))), -- another name whenever the store was found to have gone back in time
	kept       INTEGER NOT NULL DEFAULT 0 -- up to when it has what was confirmed before; 0 = it has never gone back
) STRICT;
INSERT INTO cluster DEFAULT VALUES;

CREATE TABLE members (
	incarnation TEXT PRIMARY KEY,
	name        TEXT    NOT NULL,
	url         TEXT    NOT NULL,
	gossip      TEXT    NOT NULL,
	version     TEXT    NOT NULL, -- of the program
	format      INTEGER NOT NULL, -- of journals, the newest that it reads and writes
	joined_at   INTEGER NOT NULL,
	lease_until INTEGER NOT NULL,
	renewed_at  INTEGER NOT NULL,
	renewals    INTEGER NOT NULL DEFAULT 0,
	fenced_at   INTEGER NOT NULL DEFAULT 0 -- 0 = it may write
) STRICT, WITHOUT ROWID;

CREATE TABLE flows (
	n           INTEGER PRIMARY KEY, -- order of insertion
	id          TEXT    NOT NULL UNIQUE,
	slug        TEXT    UNIQUE,
	name        TEXT    NOT NULL,
	description TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	tried       INTEGER NOT NULL DEFAULT 0 -- 1 = of a definition that is only tried: no list has it
) STRICT;
CREATE INDEX flows_listed ON flows (created_at, n) WHERE tried = 0;
CREATE INDEX flows_tried ON flows (created_at, n) WHERE tried <> 0;

-- The definition is last, so that a listing never reads through it.
CREATE TABLE flow_versions (
	n          INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL UNIQUE,
	flow_id    TEXT    NOT NULL,
	number     INTEGER NOT NULL,
	status     TEXT    NOT NULL,
	hash       TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	definition BLOB    NOT NULL
) STRICT;
CREATE INDEX flow_versions_number ON flow_versions (flow_id, number);

-- The snapshot is last, so that a listing never reads through it.
CREATE TABLE tasks (
	n            INTEGER PRIMARY KEY,
	id           TEXT    NOT NULL UNIQUE,
	flow_id      TEXT    NOT NULL,
	version_id   TEXT    NOT NULL,
	status       TEXT    NOT NULL,
	cursor    TEXT    NOT NULL,
	last_action  TEXT    NOT NULL,
	error        TEXT    NOT NULL,
	paused       INTEGER NOT NULL,
	steps        INTEGER NOT NULL,
	followed     INTEGER NOT NULL, -- failed steps that the task went on after
	waits        INTEGER NOT NULL DEFAULT 0, -- bits of what it waits for
	wait         TEXT    NOT NULL DEFAULT '', -- JSON, the wait that is told first; '' = none
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	ended_at     INTEGER NOT NULL,
	resting      INTEGER NOT NULL,
	body_hash    TEXT    NOT NULL,
	labels       TEXT,
	snapshot_seq INTEGER NOT NULL,
	params       BLOB,
	snapshot     BLOB
) STRICT;
CREATE INDEX tasks_created ON tasks (created_at, id);
CREATE INDEX tasks_of_flow ON tasks (flow_id, created_at, id);
CREATE INDEX tasks_settled ON tasks (updated_at, id) WHERE ended_at > 0 OR resting <> 0; -- a task under way is never in it
CREATE INDEX tasks_unfinished ON tasks (id) WHERE ended_at = 0 AND resting = 0;
CREATE INDEX tasks_ended ON tasks (ended_at, id, created_at, flow_id, status) WHERE ended_at > 0; -- a list by creation of those that ended in a time is sorted in it
CREATE INDEX tasks_ended_of_flow ON tasks (flow_id, status, created_at) WHERE status = 'completed' OR status = 'failed' OR status = 'canceled'; -- each state of a flow is counted in it
-- A state that is asked for has an index of its own. A task is put into that of its end once; the condition is
-- written in queries in the same words, so that the index is seen to fit.
CREATE INDEX tasks_open ON tasks (created_at, id, status, flow_id) WHERE status = 'pending' OR status = 'running' OR status = 'canceling';
CREATE INDEX tasks_completed ON tasks (created_at, id) WHERE status = 'completed';
CREATE INDEX tasks_failed ON tasks (created_at, id, flow_id) WHERE status = 'failed'; -- those of a flow are found in it, too
CREATE INDEX tasks_canceled ON tasks (created_at, id, flow_id) WHERE status = 'canceled';
CREATE INDEX tasks_failures ON tasks (ended_at, id, flow_id) WHERE status = 'failed';
CREATE INDEX tasks_paused ON tasks (created_at, id) WHERE paused = true;
CREATE INDEX tasks_waiting ON tasks (created_at, id, waits, flow_id) WHERE waits <> 0; -- a task that waits for nothing is never in it; for what another waits is told in it

-- Labels as they are asked for; written with a task that has some. Nothing of them ever changes but the status, which is that of the task.
CREATE TABLE task_labels (
	key        TEXT    NOT NULL,
	value      TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	task       TEXT    NOT NULL,
	status     TEXT    NOT NULL,
	PRIMARY KEY (key, value, created_at, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_labels_task ON task_labels (task);
CREATE INDEX task_labels_status ON task_labels (key, value, status, created_at, task);

-- By the number of the task and not its id: what tasks under way write stands together, on few pages.
CREATE TABLE task_events (
	task   INTEGER NOT NULL, -- tasks.n
	seq    INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	events BLOB    NOT NULL,
	PRIMARY KEY (task, seq)
) STRICT;

-- Snapshots of long journals that stay, as places where reading a history may begin. The newest may be newer than
-- the one in tasks. A large one is in parts, of which the first one, 0, stands for all.
CREATE TABLE checkpoints (
	task     TEXT    NOT NULL,
	seq      INTEGER NOT NULL,
	part     INTEGER NOT NULL,
	size     INTEGER NOT NULL, -- of all parts together; of the others 0
	snapshot BLOB    NOT NULL, -- this part of it
	PRIMARY KEY (task, seq, part)
) STRICT;

CREATE TABLE wakes (
	task TEXT    PRIMARY KEY,
	due  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX wakes_due ON wakes (due, task);

CREATE TABLE task_queue (
	task        TEXT    NOT NULL,
	job_id      TEXT    NOT NULL,
	service     TEXT    NOT NULL,
	enqueued_at INTEGER NOT NULL,
	turn        TEXT    NOT NULL DEFAULT '', -- among those of the same time
	size        INTEGER NOT NULL DEFAULT 0, -- in bytes
	labels      TEXT, -- JSON list; NULL = none
	PRIMARY KEY (task, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_queue_order ON task_queue (service, enqueued_at, turn);

-- Who waits for a key, and who has it. Those who wait go first by priority, then by time and turn.
CREATE TABLE permits (
	task     TEXT    NOT NULL,
	holder   TEXT    NOT NULL, -- job id
	key      TEXT    NOT NULL,
	shard    INTEGER NOT NULL, -- of the key
	most     INTEGER NOT NULL,
	per_ms   INTEGER NOT NULL, -- of a rate
	when_full TEXT   NOT NULL,
	urgency  INTEGER NOT NULL, -- the priority, the other way round
	fair     TEXT    NOT NULL,
	asked_at INTEGER NOT NULL,
	turn     TEXT    NOT NULL,
	state    INTEGER NOT NULL DEFAULT 0, -- 0 it waits, 1 given, 2 its task knows, 3 refused
	given_at INTEGER NOT NULL DEFAULT 0,
	told_at  INTEGER NOT NULL DEFAULT 0, -- when its task was told of that
	evicted  INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (task, holder, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX permits_order ON permits (key, state, fair, urgency, asked_at, turn, holder, evicted); -- who has a key is counted in it
CREATE INDEX permits_hasty ON permits (key) WHERE state = 0 AND when_full = 'refuse';
CREATE INDEX permits_untold ON permits (key) WHERE state IN (1, 3) OR evicted;
CREATE INDEX permits_open ON permits (key) WHERE state <> 2 OR evicted;

-- Work outside that attempts wait for. What has to be looked at next comes first.
CREATE TABLE externals (
	task       TEXT    NOT NULL,
	job        TEXT    NOT NULL, -- that of the attempt
	n          INTEGER NOT NULL, -- among those of the attempt
	service    TEXT    NOT NULL,
	id         TEXT    NOT NULL, -- what it is called there
	data       BLOB, -- JSON; NULL = none
	memo       BLOB, -- JSON that whoever looked at it last has noted; NULL = nothing
	started_at INTEGER NOT NULL,
	next_at    INTEGER NOT NULL, -- when it is to be looked at
	polls      INTEGER NOT NULL DEFAULT 0, -- how often it was
	failures   INTEGER NOT NULL DEFAULT 0, -- how often in a row that was in vain
	failing_at INTEGER NOT NULL DEFAULT 0, -- since when; 0 = it was not
	pending    INTEGER NOT NULL DEFAULT 0, -- nobody knows yet that it is under way there
	recalled   INTEGER NOT NULL DEFAULT 0, -- nobody waits for it any longer
	PRIMARY KEY (task, job, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX externals_next ON externals (next_at, task, job, n);

-- What tasks ask people for.
CREATE TABLE approvals (
	task        TEXT    NOT NULL,
	id          TEXT    NOT NULL, -- begins with the task
	scope       BLOB    NOT NULL, -- of the step; names of nodes may have any character in them
	node        BLOB    NOT NULL,
	visit       INTEGER NOT NULL,
	flow_id     TEXT    NOT NULL,
	state       TEXT    NOT NULL, -- open, answered, over
	since       INTEGER NOT NULL,
	due         INTEGER NOT NULL, -- 0 = never
	key         TEXT    NOT NULL, -- that an answer sets
	title       TEXT    NOT NULL,
	ended_at    INTEGER NOT NULL, -- 0 = it is open
	answered_by TEXT    NOT NULL,
	comment     TEXT    NOT NULL,
	action      TEXT    NOT NULL,
	PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_since ON approvals (state, since, id);
CREATE INDEX approvals_of_flow ON approvals (flow_id, state, since, id);

-- What is remembered of keys beside that.
CREATE TABLE permit_keys (
	key     TEXT PRIMARY KEY,
	last    TEXT    NOT NULL DEFAULT '', -- whose turn was the last one
	begun   TEXT    NOT NULL DEFAULT '', -- when those began that a rate counts
	idle_at INTEGER NOT NULL DEFAULT 0 -- from when on it says nothing
) STRICT, WITHOUT ROWID;
CREATE INDEX permit_keys_idle ON permit_keys (idle_at);

-- When tasks are begun by the clock. What is decided about the next slots is in the body.
CREATE TABLE schedules (
	id       TEXT PRIMARY KEY,
	name     TEXT    NOT NULL UNIQUE,
	flow_id  TEXT    NOT NULL,
	revision INTEGER NOT NULL, -- grows with each change
	due_at   INTEGER NOT NULL, -- when somebody has to look at it; 0 = never
	body     BLOB    NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at > 0;
CREATE INDEX schedules_of_flow ON schedules (flow_id, name);

CREATE TABLE workers (
	n              INTEGER PRIMARY KEY,
	id             TEXT    NOT NULL UNIQUE,
	url            TEXT    NOT NULL,
	type           TEXT    NOT NULL,
	services       TEXT    NOT NULL, -- JSON list
	labels         TEXT,             -- JSON list; null = none
	secret         TEXT    NOT NULL, -- '' = none
	load           INTEGER NOT NULL,
	last_heartbeat INTEGER NOT NULL,
	registered_at  INTEGER NOT NULL,
	joined_at      INTEGER NOT NULL DEFAULT 0,
	polled_at      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What attempts print, in chunks.
CREATE TABLE task_logs (
	task         TEXT    NOT NULL,
	n            INTEGER NOT NULL, -- counts the chunks of the task
	job          TEXT    NOT NULL, -- the attempt
	source       TEXT    NOT NULL, -- who numbers the lines
	number       INTEGER NOT NULL, -- of the last one
	chars_before INTEGER NOT NULL, -- of the attempt's log, as the three that follow
	lines_before INTEGER NOT NULL,
	chars        INTEGER NOT NULL,
	lines        INTEGER NOT NULL,
	content      BLOB    NOT NULL,
	PRIMARY KEY (task, n)
) STRICT;
CREATE INDEX task_logs_job ON task_logs (job, n);

-- The streams of tasks, to which their steps write values.
CREATE TABLE task_streams (
	task   TEXT    NOT NULL,
	name   TEXT    NOT NULL,
	length INTEGER NOT NULL, -- number of values
	bytes  INTEGER NOT NULL,
	ended  INTEGER NOT NULL, -- 1 = a writer has closed it
	PRIMARY KEY (task, name)
) STRICT, WITHOUT ROWID;

-- The values of streams, in groups.
CREATE TABLE stream_values (
	task    TEXT    NOT NULL,
	name    TEXT    NOT NULL,
	last    INTEGER NOT NULL, -- number of the last value in the stream
	first   INTEGER NOT NULL,
	job     TEXT    NOT NULL, -- the attempt
	step    TEXT    NOT NULL, -- '' = a function that is a flow, between its steps
	try     INTEGER NOT NULL,
	source  TEXT    NOT NULL, -- the sender that numbers the values
	number  INTEGER NOT NULL, -- of the last value
	at      INTEGER NOT NULL,
	content BLOB    NOT NULL,
	PRIMARY KEY (task, name, last)
) STRICT;
CREATE INDEX stream_values_source ON stream_values (task, name, source, number);

-- How tasks have gone, by minutes and by hours.
CREATE TABLE stats (
	flow     TEXT    NOT NULL, -- '' = all of them together
	of_nodes INTEGER NOT NULL, -- 0 = of tasks: node and scope are ''
	width    INTEGER NOT NULL, -- of the bucket, in milliseconds
	bucket   INTEGER NOT NULL, -- when it begins
	scope    TEXT    NOT NULL,
	node     TEXT    NOT NULL,
	version  TEXT    NOT NULL,
	counts   BLOB    NOT NULL,
	PRIMARY KEY (flow, of_nodes, width, bucket, scope, node, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX stats_age ON stats (width, bucket);

-- What starts tasks, or signals them, when somebody outside delivers a message.
CREATE TABLE hooks (
	name       TEXT PRIMARY KEY,
	settings   BLOB    NOT NULL, -- JSON
	secrets    BLOB    NOT NULL, -- JSON list, the newest first
	disabled   INTEGER NOT NULL,
	revision   INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
	hook   TEXT    NOT NULL,
	id     TEXT    NOT NULL,
	digest TEXT    NOT NULL, -- of the body
	task   TEXT    NOT NULL,
	answer BLOB,             -- NULL = it has not been carried out, as far as is known
	at     INTEGER NOT NULL,
	until  INTEGER NOT NULL, -- it is remembered until then
	PRIMARY KEY (hook, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_until ON deliveries (until);

-- Objects beside the store that another task than their owner refers to.
CREATE TABLE holds (
	owner  TEXT    NOT NULL,
	object TEXT    NOT NULL,
	task   TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (owner, object, task)
) STRICT, WITHOUT ROWID;

-- Lists of tasks that people have given names.
CREATE TABLE views (
	name       TEXT    NOT NULL PRIMARY KEY,
	query      TEXT    NOT NULL, -- of the page of tasks
	updated_at INTEGER NOT NULL,
	updated_by TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Who may come in, beside those whom the member's settings let in.
CREATE TABLE tokens (
	id           TEXT PRIMARY KEY,
	name         TEXT    NOT NULL UNIQUE,
	role         TEXT    NOT NULL,
	hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the token
	created_at   INTEGER NOT NULL,
	created_by   TEXT    NOT NULL,
	expires_at   INTEGER NOT NULL, -- 0 = never
	last_used_at INTEGER NOT NULL  -- 0 = it was not used
) STRICT, WITHOUT ROWID;
