package persistence

import (
	"context"
	"fmt"
	"time"
)

// Members manages the right to write and the ownership of shards. An incarnation is one life of a
// member. It holds a lease, renews it, and may write until it leaves or is fenced. The store
// assigns shards to incarnations; the members ensure that only the owner of a shard changes its
// tasks. All times are those of the store's clock.
type Members interface {
	// Join creates an incarnation with a lease.
	//
	// On a Locked store, only one member can live. Join waits until the lease of a silent
	// predecessor expires, fences the predecessor and owns every shard. If the predecessor renews
	// its lease meanwhile, Join returns an error that wraps ErrTaken and names the predecessor. On
	// any other store the new member lives beside the others and owns no shards yet.
	//
	// The first member to join a store names its cluster. A member with another cluster name, or
	// with another seal than the live members, gets ErrStranger.
	//
	// Journals are written in the newest format that all live members know. A member that does not
	// know that format, or only writes newer formats, gets ErrFormat.
	//
	// The first member that keeps large values outside the store records their place. Afterwards, a
	// member without a place gets ErrPlace. That first member gets ErrPlace too if other members
	// are alive.
	Join(ctx context.Context, j Joining) (incarnation string, err error)
	// Renew extends the lease, even an expired one if no member has fenced the incarnation. It
	// returns ErrFenced if the incarnation was ended, and ErrRewound if the store does not know the
	// incarnation. With both errors, Now, History and Kept of the Pulse are set.
	Renew(ctx context.Context, incarnation string, ttl time.Duration) (Pulse, error)
	// BeginHistory ends all incarnations, frees their shards and gives the store's history a new
	// name. It does nothing if the current history is not known, because another member has begun a
	// new one. It waits for batches in progress, so the ended incarnations write nothing
	// afterwards. kept is the time up to which the store has all confirmed commits, in Unix
	// milliseconds. 0 means the newest lease renewal in the store.
	BeginHistory(ctx context.Context, known string, kept int64) error
	// Drain sets whether the incarnation should own no shards, for example because the member will
	// leave. The incarnation stays alive and must release its shards itself. Drain returns
	// ErrFenced if the incarnation has ended. On a Locked store it does nothing.
	Drain(ctx context.Context, incarnation string, drains bool) error
	// Leave gives up the lease and the shards of the incarnation. No commit of the incarnation is
	// written afterwards. It does nothing if the incarnation has left or was fenced.
	Leave(ctx context.Context, incarnation string) error
	// Cluster returns the live members, those that were fenced or left within Remembered, and the
	// owner of each shard. All are of the same moment.
	Cluster(ctx context.Context) (*Cluster, error)
	// Claim takes shards without an owner. It returns in order the requested shards that the
	// incarnation owns now. Shards of other owners are not taken. It returns ErrFenced if the
	// incarnation may not write.
	Claim(ctx context.Context, incarnation string, shards []int) (owned []int, err error)
	// Release gives up shards. The caller must have no pending writes for them. Shards that the
	// incarnation does not own are ignored. The receiver owns a shard at once if it is alive;
	// otherwise the shard has no owner. On a Locked store Release does nothing.
	Release(ctx context.Context, incarnation string, transfers []Transfer) error
	// Fence ends an incarnation with an expired lease (MemberRow.Over). When it returns true, no
	// commit of that incarnation is written anymore, and its shards have no owner. It returns false
	// if the lease still runs, and true if the incarnation has ended already.
	Fence(ctx context.Context, incarnation string) (bool, error)
	// Moves returns the changes of shard owners within Remembered, in order of time, and at most
	// the last MostMoves. Shards that changed between the same members at the same time are one
	// move. A member that claims its own shard back is no move. A Locked store has no moves.
	Moves(ctx context.Context) ([]Move, error)
	// Secret returns a random text that is the same for every opener of the store and never
	// changes. The first call creates it.
	Secret(ctx context.Context) (string, error)
	// ValuesAt returns the place of large values outside the store, as the last joining member
	// reported it; "" means none.
	ValuesAt(ctx context.Context) (string, error)
	// Locked reports whether no other process can open the store while this process has it open. On
	// such a store, a late renewal of the lease is harmless, because no other member can take the
	// lease.
	Locked() bool
}

// Forgotten is the minimum time that a store keeps the row of a member that is gone.
const Forgotten = 24 * time.Hour

// Remembered is the time for which Cluster and Moves report members that are gone.
const Remembered = 10 * time.Minute

// MostMoves is the largest number of moves returned at once.
const MostMoves = 10_000

// Transfer gives a shard to another incarnation.
type Transfer struct {
	Shard int
	To    string // incarnation of the receiver; "" means no owner
}

// Move is a change of the owner of some shards.
type Move struct {
	At       int64  // time of the change by the store's clock
	From, To string // incarnations; From is "" if the shards had no owner
	Shards   int
}

// Joining is the data with which a member joins.
type Joining struct {
	Name    string // name of the member in logs and messages
	Cluster string // name of the cluster to join
	URL     string // address for other members; "" means none
	Gossip  string // host and port for gossip; "" means none
	Version string // version of the program, for display; "" means unknown
	Format  int    // newest journal format that the member reads and writes; at least 1
	// derived from the cluster's secret without revealing the secret; equal for all live members
	Seal   string
	Values string // place of large values, for display, without secrets; "" means in the store
	TTL    time.Duration
}

// Pulse is the result of a lease renewal.
type Pulse struct {
	Now        time.Time // time of the store's clock
	Generation int64     // generation of the cluster
	Format     int       // format in which journals are written; all members read it

	Renewals int64  // number of renewals of this lease, including this one
	Before   int64  // time of the previous renewal, or of the join, in Unix milliseconds
	History  string // name of the store's history; see BeginHistory
	// time up to which the history has the commits confirmed before it began, in Unix milliseconds;
	// 0 means the first history
	Kept     int64
	Takeover *Takeover // last change of the database server seen by this process; nil means none
}

// Takeover reports that the store is on another server than before, or on a state that the server
// did not have before.
type Takeover struct {
	Cause string // observed evidence, for display
	Lost  bool   // data that was confirmed to this process is missing
}

// Cluster is the membership and the ownership of shards at one moment.
type Cluster struct {
	// grows only when members join, drain or leave, or shards change owners
	Generation int64
	Now        int64       // time of the store's clock
	Members    []MemberRow // in order of joining
	Owners     []string    // owning incarnation of each shard; "" means no owner
}

// MemberRow is one incarnation as stored.
type MemberRow struct {
	Incarnation, Name, URL, Gossip, Version string

	Format   int   // newest journal format that the member reads and writes
	JoinedAt int64 // time of joining, later than that of every earlier member
	Until    int64 // time when the lease expires
	TTL      int64 // length of the last renewal; 0 on a Locked store
	FencedAt int64 // time when the member was fenced or left; 0 if it is alive
	Draining bool  // the member should own no shards
}

// Left reports whether the member left in order, while its lease still ran.
func (m MemberRow) Left() bool { return m.FencedAt > 0 && !m.Over(m.FencedAt) }

// Over reports whether the lease has expired. A lease that would run much longer than its TTL was
// renewed before the store's clock was set back. Such a lease counts as expired, because its member
// had time to renew it again.
func (m MemberRow) Over(now int64) bool { return m.Until <= now || m.TTL > 0 && m.Until > now+2*m.TTL }

// Unsealed returns the error for a member with another secret than the live members.
func Unsealed() error {
	return fmt.Errorf("%w: its members have another secret: give all of them the same "+
		"--cluster-secret-file, or none of them any", ErrStranger)
}

// Fits returns an error if a member that knows journals up to format may not join. written is the
// format of the existing journals; 0 means that there are none. alone skips the check against other
// members.
func Fits(written, format int, alone bool) error {
	switch {
	case format < written:
		return fmt.Errorf("%w: journals are written in format %d, and this program knows up to "+
			"%d: use a newer program", ErrFormat, written, format)
	case format > written+1 && !alone && written > 0:
		return fmt.Errorf("%w: members live here that know journals up to format %d, and this "+
			"program writes %d and %d: upgrade by one release after the other, or stop all members first",
			ErrFormat, written, format-1, format)
	}
	return nil
}

// Stranger returns the error for a member whose cluster name differs from the store's.
func Stranger(store, member string) error {
	return fmt.Errorf("%w: it is of cluster %q and this member of %q; give the member that "+
		"name, or a store of its own", ErrStranger, store, member)
}

// Placed returns an error if a member with large values at one place may not join a store with
// another recorded place. "" means that values are in the store. Placed does not detect that two
// different addresses mean the same place.
func Placed(noted, member string, alone bool) error {
	switch {
	case noted != "" && member == "":
		return fmt.Errorf("%w: those of this store are at %s, and this member could not read "+
			"them: give it --payload-store (TROUPE_PAYLOAD_STORE, Config.PayloadStore) with that place",
			ErrPlace, noted)
	case noted == "" && member != "" && !alone:
		return fmt.Errorf("%w: members live here that keep all values in the store, and could "+
			"not read what this one keeps at %s: stop all members first, and give each of them "+
			"--payload-store", ErrPlace, member)
	}
	return nil
}
