package wire

// Cluster lists the members of the cluster, as stored at one moment.
type Cluster struct {
	Name      string   `json:"name" doc:"Name of the cluster."`
	StoreTime Time     `json:"store_time" doc:"Current time of the store."`
	Unowned   int      `json:"unowned" doc:"Number of shards without an owner; their tasks wait."`
	Items     []Member `json:"items" doc:"Members in order of joining; never null."`
}

// Member is one incarnation of a member.
type Member struct {
	Name        string `json:"name" doc:"Name of the member."`
	Incarnation string `json:"incarnation" doc:"ID of this incarnation of the member; a restarted member has a new one."`
	State       string `json:"state" enum:"alive,draining,overdue,gone" doc:"State of the member. draining: it owns no shards, or hands them off. overdue: its lease has expired, and its shards have no new owner yet. gone: it left or was fenced in the last ten minutes."`
	Current     bool   `json:"current,omitempty" doc:"True for the member that answers this request."`
	Version     string `json:"version,omitempty" doc:"Version of Troupe."`
	URL         string `json:"url,omitempty" doc:"URL at which other members reach it; absent if there are no others."`
	Gossip      string `json:"gossip,omitempty" doc:"Address of its gossip listener."`
	JoinedAt    Time   `json:"joined_at" doc:"Time when it joined."`
	EndedAt     Time   `json:"ended_at,omitzero" doc:"Time when it left or was fenced."`
	LeaseMS     int64  `json:"lease_ms" doc:"Remaining time of its lease in milliseconds; 0 = the lease has expired."`
	Shards      int    `json:"shards" doc:"Number of shards that it owns, of 1024."`
	ActiveTasks int    `json:"active_tasks" doc:"Number of tasks in its shards that have work to do."`
	IdleTasks   int    `json:"idle_tasks" doc:"Number of tasks in its shards that wait for a time or for an external event."`
}

// Shards holds the owners of shards.
type Shards struct {
	StoreTime Time        `json:"store_time" doc:"Current time of the store."`
	Items     []Shard     `json:"items" doc:"Shards in order of number; never null."`
	Moves     []ShardMove `json:"moves" doc:"Moves of the last ten minutes in order of time, at most 1000; never null."`
}

// Shard is one of the 1024 parts that tasks are divided into.
type Shard struct {
	Shard       int    `json:"shard" doc:"Number of the shard."`
	Owner       string `json:"owner,omitempty" doc:"Incarnation of the member that owns it; absent while it has no owner."`
	Member      string `json:"member,omitempty" doc:"Name of the owner."`
	ActiveTasks int    `json:"active_tasks" doc:"Number of tasks that have work to do."`
	IdleTasks   int    `json:"idle_tasks" doc:"Number of tasks that wait for a time or for an external event."`
}

// ShardMove is a move of shards to another member. A move in several steps counts as one.
type ShardMove struct {
	At     Time        `json:"at" doc:"Time when the move started."`
	Shards int         `json:"shards" doc:"Number of shards."`
	From   *MemberName `json:"from,omitempty" doc:"Previous owner; absent if there was none."`
	To     MemberName  `json:"to" doc:"New owner."`
}

// MemberName identifies a member that may have left.
type MemberName struct {
	Incarnation string `json:"incarnation" doc:"ID of the incarnation."`
	Name        string `json:"name,omitempty" doc:"Name of the member; absent if it left so long ago that its name is no longer known."`
}
