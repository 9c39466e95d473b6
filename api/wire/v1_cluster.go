package wire

// Cluster lists the members of the cluster, as stored at one moment.
type Cluster struct {
	Name    string   `json:"name" doc:"of the cluster"`
	Now     Time     `json:"now" doc:"the store's time"`
	Unowned int      `json:"unowned" doc:"shards that nobody owns for the moment; their tasks wait"`
	Items   []Member `json:"items" doc:"in order of joining; never null"`
}

// Member is one incarnation of a member.
type Member struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation" doc:"names this life of the member: one that is started again has another"`
	State       string `json:"state" enum:"living,draining,overdue,gone" doc:"draining: it owns no shards, or hands over those it has. overdue: its lease has run out, and nobody has taken its shards yet. gone: it has left, or was fenced, in the last ten minutes"`
	Answers     bool   `json:"answers,omitempty" doc:"true for the member that answers this request"`
	Version     string `json:"version,omitempty" doc:"of Troupe"`
	URL         string `json:"url,omitempty" doc:"where other members reach it; absent when it has no others"`
	Gossip      string `json:"gossip,omitempty" doc:"where its gossip is heard"`
	JoinedAt    Time   `json:"joined_at"`
	EndedAt     Time   `json:"ended_at,omitzero" doc:"when it left or was fenced"`
	LeaseMS     int64  `json:"lease_ms" doc:"what is left of its lease, in milliseconds; 0 = it has run out"`
	Shards      int    `json:"shards" doc:"that it owns, of 1024"`
	Active      int    `json:"active" doc:"tasks of its shards that are not at rest, because there is something to do for them"`
	Resting     int    `json:"resting" doc:"tasks of its shards that wait for a time, or for somebody"`
}

// Shards holds the owners of shards.
type Shards struct {
	Now   Time    `json:"now" doc:"the store's time"`
	Items []Shard `json:"items" doc:"never null"`
	Moves []Move  `json:"moves" doc:"of the last ten minutes, in order of time; at most 1000; never null"`
}

// Shard is one of the 1024 parts that tasks are divided into.
type Shard struct {
	Shard   int    `json:"shard" doc:"its number"`
	Owner   string `json:"owner,omitempty" doc:"incarnation of the member that owns it; absent = nobody does for the moment"`
	Member  string `json:"member,omitempty" doc:"name of that member"`
	Active  int    `json:"active" doc:"tasks that are not at rest"`
	Resting int    `json:"resting" doc:"tasks that wait for a time, or for somebody"`
}

// Move is a hand-off of shards. A hand-off in several portions is one move.
type Move struct {
	At     Time        `json:"at" doc:"when it began"`
	Shards int         `json:"shards" doc:"how many"`
	From   *MemberName `json:"from,omitempty" doc:"who had them before; absent when nobody had"`
	To     MemberName  `json:"to"`
}

// MemberName identifies a member that may have left.
type MemberName struct {
	Incarnation string `json:"incarnation"`
	Name        string `json:"name,omitempty" doc:"absent when it has gone for so long that nobody knows it"`
}
