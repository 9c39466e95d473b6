-- "troupe." stands for the schema that the store is given.

-- What the schema was made by. Each migration notes itself.
CREATE TABLE troupe.migrations (
	version bigint PRIMARY KEY,
	hash    text NOT NULL -- of its text, without comments and spaces
);

-- One row. The generation grows with each member that comes, drains or goes and each shard that changes hands, the
-- era with each flow that is deleted.
CREATE TABLE troupe.cluster (
	one        boolean PRIMARY KEY DEFAULT true CHECK (one),
	name       text, -- NULL until the first member joins
	values_at  text NOT NULL DEFAULT '', -- where large values are kept; '' = they are in here
	secret     text, -- that members prove themselves with; NULL until the first one asks for it
	generation bigint NOT NULL DEFAULT 0,
	format     integer NOT NULL DEFAULT 0, -- that journals are written in: all members read it; 0 = there are none
	era        bigint NOT NULL DEFAULT 0,
	history    text NOT NULL DEFAULT md5(random()::text || clock_timestamp()::text), -- another name whenever the store was found to have gone back in time
	kept       bigint NOT NULL DEFAULT 0 -- up to when it has what was confirmed before; 0 = it has never gone back
);
INSERT INTO troupe.cluster DEFAULT VALUES;

-- The row that says whether an incarnation may write. Every batch holds a share lock on it, so it
-- must not change for anything but the fence and a new era: the lease lives in a table of its own.
CREATE TABLE troupe.members (
	incarnation text COLLATE "C" PRIMARY KEY,
	name        text   NOT NULL,
	url         text   NOT NULL,
	gossip      text   NOT NULL,
	version     text   NOT NULL, -- of the program
	format      integer NOT NULL, -- of journals, the newest that it reads and writes
	seal        text   NOT NULL, -- of the secret that it proves itself with
	joined_at   bigint NOT NULL,
	era         bigint NOT NULL, -- that of the cluster, as long as the member may write
	fenced_at   bigint NOT NULL DEFAULT 0 -- 0 = it may write
);

CREATE TABLE troupe.leases (
	incarnation text COLLATE "C" PRIMARY KEY REFERENCES troupe.members ON DELETE CASCADE,
	until       bigint NOT NULL, -- that is longer from now than twice ttl, the clock has been put back since
	ttl         bigint NOT NULL,
	renewals    bigint NOT NULL DEFAULT 0,
	draining    boolean NOT NULL DEFAULT false -- it is to own no shards: here, since the row of members must not change
) WITH (fillfactor = 50);

CREATE TABLE troupe.shards (
	shard smallint PRIMARY KEY,
	owner text COLLATE "C" NOT NULL DEFAULT '', -- an incarnation; '' = nobody
	had   text COLLATE "C" NOT NULL DEFAULT '' -- who owned it last, while nobody does
) WITH (fillfactor = 40);
INSERT INTO troupe.shards (shard) SELECT generate_series(0, 1023);

CREATE TABLE troupe.moves ( -- of the last minutes
	n      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at     bigint NOT NULL,
	giver  text   NOT NULL, -- '' = nobody
	taker  text   NOT NULL,
	shards smallint NOT NULL
);

CREATE TABLE troupe.flows (
	n           bigint GENERATED ALWAYS AS IDENTITY, -- order of insertion
	id          text COLLATE "C" PRIMARY KEY,
	slug        text COLLATE "C" UNIQUE,
	name        text   NOT NULL,
	description text   NOT NULL,
	created_at  bigint NOT NULL,
	tried       boolean NOT NULL DEFAULT false -- of a definition that is only tried: no list has it
);
CREATE INDEX flows_tried ON troupe.flows (created_at, n) WHERE tried;

CREATE TABLE troupe.flow_versions (
	n          bigint GENERATED ALWAYS AS IDENTITY,
	id         text COLLATE "C" PRIMARY KEY,
	flow_id    text COLLATE "C" NOT NULL,
	number     integer NOT NULL,
	definition bytea   NOT NULL,
	status     text    NOT NULL,
	hash       text    NOT NULL,
	created_at bigint  NOT NULL
);
CREATE INDEX flow_versions_number ON troupe.flow_versions (flow_id, number);

-- No index on what changes often, so that an update stays in its page: settled_at, which tells tasks that
-- live on from those that have ended or are at rest, changes once or twice in the life of a task, and
-- while it is set it is the time of the last update. It is no generated column, whose expression is read and
-- prepared anew by every statement that writes tasks.
CREATE TABLE troupe.tasks (
	id           text COLLATE "C" PRIMARY KEY,
	flow_id      text COLLATE "C" NOT NULL,
	version_id   text COLLATE "C" NOT NULL,
	created_at   bigint  NOT NULL,
	updated_at   bigint  NOT NULL,
	ended_at     bigint  NOT NULL DEFAULT 0,
	snapshot_seq bigint  NOT NULL DEFAULT 0,
	steps        integer NOT NULL DEFAULT 0,
	followed     integer NOT NULL DEFAULT 0, -- failed steps that the task went on after
	paused       boolean NOT NULL DEFAULT false,
	resting      boolean NOT NULL DEFAULT false,
	shard        smallint NOT NULL, -- of the id
	settled_at   bigint,
	status       text    NOT NULL DEFAULT 'pending',
	outcome      text    NOT NULL DEFAULT '', -- the status it has ended with
	cursor       text    NOT NULL DEFAULT '',
	last_action  text    NOT NULL DEFAULT '',
	error        text    NOT NULL DEFAULT '',
	waits        bigint  NOT NULL DEFAULT 0, -- bits of what it waits for
	wait         text    NOT NULL DEFAULT '', -- JSON, the wait that is told first; '' = none
	body_hash    text    NOT NULL,
	labels       jsonb, -- NULL = none
	params       bytea,
	snapshot     bytea
) WITH (fillfactor = 70);
CREATE INDEX tasks_created ON troupe.tasks (created_at);
CREATE INDEX tasks_of_flow ON troupe.tasks (flow_id, created_at);
CREATE INDEX tasks_unfinished ON troupe.tasks (id) WHERE settled_at IS NULL;
CREATE INDEX tasks_settled ON troupe.tasks (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX tasks_ended ON troupe.tasks (ended_at) WHERE ended_at > 0;
-- A state that is asked for has an index of its own. No condition names the status, which changes while a task lives: an
-- update of what an index only asks about leaves its page, too. Queries have the conditions in the same words, so that
-- the index is seen to fit. Tasks are counted in them, by flow as well.
CREATE INDEX tasks_open ON troupe.tasks (created_at) INCLUDE (flow_id, status) WHERE ended_at = 0; -- the status is that of the first row in nearly all
CREATE INDEX tasks_completed ON troupe.tasks (created_at) INCLUDE (flow_id) WHERE outcome = 'completed';
CREATE INDEX tasks_failed ON troupe.tasks (created_at) INCLUDE (flow_id) WHERE outcome = 'failed';
CREATE INDEX tasks_canceled ON troupe.tasks (created_at) INCLUDE (flow_id) WHERE outcome = 'canceled';
CREATE INDEX tasks_failures ON troupe.tasks (ended_at) WHERE outcome = 'failed';
CREATE INDEX tasks_paused ON troupe.tasks (created_at) WHERE paused;
CREATE INDEX tasks_waiting ON troupe.tasks (created_at) WHERE waits <> 0; -- a task that waits for nothing is never in it
CREATE INDEX tasks_labels ON troupe.tasks USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL;

-- What the journal calls a task: the UUID in its id, which is less than half as long in each row and again in its index. What is no such id
-- has another one.
CREATE FUNCTION troupe.journal_key(id text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN id ~ '^task-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN substr(id, 6)::uuid ELSE md5(id)::uuid END
$$;

CREATE TABLE troupe.task_events (
	task   uuid   NOT NULL, -- journal_key(tasks.id)
	seq    bigint NOT NULL,
	at     bigint NOT NULL,
	events bytea  NOT NULL,
	PRIMARY KEY (task, seq)
);

-- Snapshots of long journals that stay, as places where reading a history may begin. The newest may be newer than
-- the one in tasks. A large one is in parts, of which the first one, 0, stands for all.
CREATE TABLE troupe.checkpoints (
	task     text COLLATE "C" NOT NULL,
	seq      bigint  NOT NULL,
	part     integer NOT NULL,
	size     bigint  NOT NULL, -- of all parts together; of the others 0
	snapshot bytea   NOT NULL, -- this part of it
	PRIMARY KEY (task, seq, part)
);

CREATE TABLE troupe.wakes (
	task  text COLLATE "C" PRIMARY KEY,
	due   bigint NOT NULL,
	shard smallint NOT NULL -- of the task
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX wakes_due ON troupe.wakes (due, task);

-- Ids of jobs have the paths of their scopes in them, which may be longer than what an index takes. Of such a one indexes have the beginning and the
-- hash, and the whole of it is in a column of its own.
CREATE TABLE troupe.task_queue (
	task        text COLLATE "C" NOT NULL,
	job_id      text COLLATE "C" NOT NULL,
	service     text COLLATE "C" NOT NULL,
	enqueued_at bigint NOT NULL,
	turn        text COLLATE "C" NOT NULL DEFAULT '', -- among those of the same time
	size        bigint NOT NULL DEFAULT 0, -- in bytes
	labels      jsonb, -- a list; NULL = none
	long_id     text,  -- NULL = job_id is whole
	PRIMARY KEY (task, job_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX task_queue_order ON troupe.task_queue (service, enqueued_at, turn);

-- Who waits for a key, and who has it. Those who wait go first by priority, then by time and turn.
CREATE TABLE troupe.permits (
	task      text COLLATE "C" NOT NULL,
	holder    text COLLATE "C" NOT NULL, -- job id
	key       text COLLATE "C" NOT NULL,
	shard     smallint NOT NULL, -- of the key
	most      bigint   NOT NULL,
	per_ms    bigint   NOT NULL, -- of a rate
	when_full text     NOT NULL,
	urgency   bigint   NOT NULL, -- the priority, the other way round
	fair      text COLLATE "C" NOT NULL,
	asked_at  bigint   NOT NULL,
	turn      text COLLATE "C" NOT NULL,
	state     smallint NOT NULL DEFAULT 0, -- 0 it waits, 1 given, 2 its task knows, 3 refused
	given_at  bigint   NOT NULL DEFAULT 0,
	told_at   bigint   NOT NULL DEFAULT 0, -- when its task was told of that
	evicted   boolean  NOT NULL DEFAULT false,
	long_holder text, -- NULL = holder is whole
	PRIMARY KEY (task, holder, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX permits_waiting ON troupe.permits (key, fair, urgency, asked_at, turn, holder) WHERE state = 0;
CREATE INDEX permits_hasty ON troupe.permits (key, when_full, asked_at, turn) WHERE state = 0 AND when_full <> '';
CREATE INDEX permits_given ON troupe.permits (key, given_at) WHERE state IN (1, 2);
CREATE INDEX permits_untold ON troupe.permits (key, told_at) WHERE state IN (1, 3) OR evicted;
CREATE INDEX permits_open ON troupe.permits (key, shard) WHERE state <> 2 OR evicted;

-- Work outside that attempts wait for. What has to be looked at next comes first.
CREATE TABLE troupe.externals (
	task       text COLLATE "C" NOT NULL,
	job        text COLLATE "C" NOT NULL, -- that of the attempt
	n          integer  NOT NULL, -- among those of the attempt
	shard      smallint NOT NULL, -- of the task
	service    text     NOT NULL,
	id         text     NOT NULL, -- what it is called there
	data       bytea, -- JSON; NULL = none
	memo       bytea, -- JSON that whoever looked at it last has noted; NULL = nothing
	started_at bigint   NOT NULL,
	next_at    bigint   NOT NULL, -- when it is to be looked at
	polls      integer  NOT NULL DEFAULT 0, -- how often it was
	failures   integer  NOT NULL DEFAULT 0, -- how often in a row that was in vain
	failing_at bigint   NOT NULL DEFAULT 0, -- since when; 0 = it was not
	pending    boolean  NOT NULL DEFAULT false, -- nobody knows yet that it is under way there
	recalled   boolean  NOT NULL DEFAULT false, -- nobody waits for it any longer
	long_job   text, -- NULL = job is whole
	PRIMARY KEY (task, job, n)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX externals_next ON troupe.externals (next_at, task, job, n);

-- What tasks ask people for.
CREATE TABLE troupe.approvals (
	task        text COLLATE "C" NOT NULL,
	id          text COLLATE "C" NOT NULL, -- begins with the task
	scope       bytea  NOT NULL, -- of the step; names of nodes may have any character in them
	node        bytea  NOT NULL,
	visit       bigint NOT NULL,
	flow_id     text COLLATE "C" NOT NULL,
	state       text COLLATE "C" NOT NULL, -- open, answered, over
	since       bigint NOT NULL,
	due         bigint NOT NULL, -- 0 = never
	key         text   NOT NULL, -- that an answer sets
	title       text   NOT NULL,
	ended_at    bigint NOT NULL, -- 0 = it is open
	answered_by text   NOT NULL,
	comment     text   NOT NULL,
	action      text   NOT NULL,
	PRIMARY KEY (task, id)
);
CREATE INDEX approvals_since ON troupe.approvals (state, since, id);
CREATE INDEX approvals_of_flow ON troupe.approvals (flow_id, state, since, id);

-- What is remembered of keys beside that. Whoever decides about a key locks its row.
CREATE TABLE troupe.permit_keys (
	key     text COLLATE "C" PRIMARY KEY,
	last    text COLLATE "C" NOT NULL DEFAULT '', -- whose turn was the last one
	begun   text   NOT NULL DEFAULT '', -- when those began that a rate counts
	idle_at bigint NOT NULL DEFAULT 0 -- from when on it says nothing
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX permit_keys_idle ON troupe.permit_keys (idle_at);

-- What a batch is sent as: one array of each kind that it has. They are no row types of tables, so that a new
-- column does no harm to a member that does not know it.
CREATE TYPE troupe.batch_last AS (task uuid, seq bigint);
CREATE TYPE troupe.batch_version AS (id text);
CREATE TYPE troupe.batch_task AS (
	id text, flow_id text, version_id text, created_at bigint, updated_at bigint, ended_at bigint, snapshot_seq bigint,
	steps bigint, followed bigint, paused boolean, resting boolean, shard bigint, settled_at bigint, status text, cursor text, last_action text, error text,
	waits bigint, wait text, body_hash text, labels jsonb, params bytea, snapshot bytea);
CREATE TYPE troupe.batch_row AS (task uuid, seq bigint, at bigint, events bytea);
CREATE TYPE troupe.batch_checkpoint AS (task text, seq bigint, part bigint, size bigint, snapshot bytea);
CREATE TYPE troupe.batch_change AS (
	task text, seq bigint, at bigint, ended_at bigint, steps bigint, followed bigint, paused boolean,
	status text, cursor text, last_action text, error text, waits bigint, wait text, resting boolean, snapshot bytea);
CREATE TYPE troupe.batch_wake AS (task text, begins boolean, due bigint, shard bigint);
CREATE TYPE troupe.batch_job AS (task text, begins boolean, job_id text, service text, enqueued_at bigint, turn text, size bigint, labels jsonb, long_id text);

CREATE TYPE troupe.batch_permit AS (
	task text, begins boolean, holder text, key text, shard bigint, most bigint, per_ms bigint, when_full text, urgency bigint, fair text,
	asked_at bigint, turn text, long_holder text);
CREATE TYPE troupe.batch_permit_id AS (task text, holder text, key text);
CREATE TYPE troupe.batch_external AS (
	task text, begins boolean, job text, n bigint, shard bigint, service text, id text, data bytea, started_at bigint, next_at bigint, pending boolean, recalled boolean, long_job text);
CREATE TYPE troupe.batch_external_id AS (task text, job text, n bigint);
CREATE TYPE troupe.batch_approval AS (
	task text, begins boolean, id text, scope bytea, node bytea, visit bigint, flow_id text, state text, since bigint, due bigint, key text, title text,
	ended_at bigint, answered_by text, comment text, action text);

-- When tasks are begun by the clock. What is decided about the next slots is in the body.
CREATE TABLE troupe.schedules (
	id       text COLLATE "C" PRIMARY KEY,
	name     text COLLATE "C" NOT NULL UNIQUE,
	flow_id  text COLLATE "C" NOT NULL,
	shard    smallint NOT NULL, -- of the id
	revision bigint   NOT NULL, -- grows with each change
	due_at   bigint   NOT NULL, -- when somebody has to look at it; 0 = never
	body     bytea    NOT NULL  -- JSON
) WITH (fillfactor = 50);
CREATE INDEX schedules_due ON troupe.schedules (due_at) WHERE due_at > 0;
CREATE INDEX schedules_of_flow ON troupe.schedules (flow_id, name);

CREATE TABLE troupe.workers (
	n              bigint GENERATED ALWAYS AS IDENTITY,
	id             text COLLATE "C" PRIMARY KEY,
	url            text    NOT NULL,
	type           text    NOT NULL,
	services       json    NOT NULL, -- a list
	labels         json,             -- a list; null = none
	secret         text    NOT NULL, -- '' = none
	load           integer NOT NULL,
	last_heartbeat bigint  NOT NULL,
	registered_at  bigint  NOT NULL,
	joined_at      bigint  NOT NULL DEFAULT 0,
	polled_at      bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- What attempts print, in chunks.
CREATE TABLE troupe.task_logs (
	task         text COLLATE "C" NOT NULL,
	n            bigint NOT NULL, -- counts the chunks of the task
	job          text COLLATE "C" NOT NULL, -- the attempt
	source       text COLLATE "C" NOT NULL, -- who numbers the lines
	number       bigint NOT NULL, -- of the last one
	chars_before bigint NOT NULL, -- of the attempt's log, as the three that follow
	lines_before bigint NOT NULL,
	chars        bigint NOT NULL,
	lines        bigint NOT NULL,
	content      bytea NOT NULL,
	long_job     text, -- NULL = job is whole
	PRIMARY KEY (task, n)
);
CREATE INDEX task_logs_job ON troupe.task_logs (job, n);

-- The streams of tasks, to which their steps write values.
CREATE TABLE troupe.task_streams (
	task   text COLLATE "C" NOT NULL,
	name   text COLLATE "C" NOT NULL,
	length bigint  NOT NULL, -- number of values
	bytes  bigint  NOT NULL,
	ended  boolean NOT NULL, -- a writer has closed it
	PRIMARY KEY (task, name)
);

-- The values of streams, in groups.
CREATE TABLE troupe.stream_values (
	task    text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	last    bigint NOT NULL, -- number of the last value in the stream
	first   bigint NOT NULL,
	job     text COLLATE "C" NOT NULL, -- the attempt
	step    text COLLATE "C" NOT NULL, -- '' = a function that is a flow, between its steps
	try     bigint NOT NULL,
	source  text COLLATE "C" NOT NULL, -- the sender that numbers the values
	number  bigint NOT NULL, -- of the last value
	at      bigint NOT NULL,
	content bytea  NOT NULL,
	PRIMARY KEY (task, name, last)
);
CREATE INDEX stream_values_source ON troupe.stream_values (task, name, source, number);

-- How tasks have gone, by minutes and by hours. The same rows are written again and again.
CREATE TABLE troupe.stats (
	flow     text COLLATE "C" NOT NULL, -- '' = all of them together
	of_nodes boolean NOT NULL, -- false = of tasks: node and scope are ''
	width    bigint  NOT NULL, -- of the bucket, in milliseconds
	bucket   bigint  NOT NULL, -- when it begins
	scope    text COLLATE "C" NOT NULL,
	node     text COLLATE "C" NOT NULL,
	version  text COLLATE "C" NOT NULL,
	counts   bytea   NOT NULL,
	PRIMARY KEY (flow, of_nodes, width, bucket, scope, node, version)
) WITH (fillfactor = 70);
CREATE INDEX stats_age ON troupe.stats (width, bucket);

-- What starts tasks, or signals them, when somebody outside delivers a message.
CREATE TABLE troupe.hooks (
	name       text COLLATE "C" PRIMARY KEY,
	settings   bytea   NOT NULL, -- JSON
	secrets    bytea   NOT NULL, -- JSON list, the newest first
	disabled   boolean NOT NULL,
	revision   bigint  NOT NULL,
	created_at bigint  NOT NULL,
	updated_at bigint  NOT NULL
);

CREATE TABLE troupe.deliveries (
	hook   text COLLATE "C" NOT NULL,
	id     text COLLATE "C" NOT NULL,
	digest text   NOT NULL, -- of the body
	task   text   NOT NULL,
	answer bytea,           -- NULL = it has not been carried out, as far as is known
	at     bigint NOT NULL,
	until  bigint NOT NULL, -- it is remembered until then
	PRIMARY KEY (hook, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX deliveries_until ON troupe.deliveries (until);

-- Objects beside the store that another task than their owner refers to.
CREATE TABLE troupe.holds (
	owner  text COLLATE "C" NOT NULL,
	object text COLLATE "C" NOT NULL,
	task   text COLLATE "C" NOT NULL,
	at     bigint NOT NULL,
	PRIMARY KEY (owner, object, task)
);

-- Lists of tasks that people have given names.
CREATE TABLE troupe.views (
	name       text COLLATE "C" PRIMARY KEY,
	query      text   NOT NULL, -- of the page of tasks
	updated_at bigint NOT NULL,
	updated_by text   NOT NULL
);

-- Who may come in, beside those whom the members' settings let in.
CREATE TABLE troupe.tokens (
	id           text COLLATE "C" PRIMARY KEY,
	name         text COLLATE "C" NOT NULL UNIQUE,
	role         text   NOT NULL,
	hash         bytea  NOT NULL UNIQUE, -- SHA-256 of the token
	created_at   bigint NOT NULL,
	created_by   text   NOT NULL,
	expires_at   bigint NOT NULL, -- 0 = never
	last_used_at bigint NOT NULL  -- 0 = it was not used
);

-- What is large is compressed by lz4 where the server has it: the server's own method takes several times as long, which
-- for the rows of a step with many units is longer than all else that the server does.
DO $$
DECLARE
	large record;
BEGIN
	FOR large IN
		SELECT c.oid::regclass AS table_name, a.attname AS column_name
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'troupe.tasks'::regclass) AND c.relkind = 'r' AND a.atttypid = 'bytea'::regtype
			AND a.attnum > 0 AND NOT a.attisdropped
			AND c.relname IN ('flow_versions', 'schedules', 'tasks', 'task_events', 'checkpoints', 'task_logs', 'stream_values', 'externals', 'hooks', 'deliveries', 'stats', 'tokens', 'approvals')
	LOOP
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION lz4', large.table_name, large.column_name);
	END LOOP;
EXCEPTION
	WHEN feature_not_supported OR syntax_error THEN
		NULL; -- a server without lz4, or of a version before 14
END
$$;
