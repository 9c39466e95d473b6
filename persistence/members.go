package persistence

import (
	"context"
	"fmt"
	"time"
)

// Members is who may write, and who owns which tasks. A member's incarnation is one life of it: it
// has a lease, which it renews, and may write until it leaves or is fenced. Which shards an
// incarnation owns is said here; that nobody else touches their tasks is up to the members. The
// time is that of the store's clock, wherever a member runs.
type Members interface {
	// Join makes a new incarnation with a lease. Where only one member can live (Locked) it waits
	// until the lease of a silent predecessor has run out, fences it and owns every shard; a
	// predecessor that renews meanwhile is ErrTaken, wrapped in a text that names it. Elsewhere the
	// new one lives beside the others and owns nothing yet. The first to join a store names its
	// cluster; one of another name, or of another seal than those who live, is ErrStranger.
	// Journals are written in the newest format that all know who live: one who does not know it,
	// or does without it, is ErrFormat. Where large values are kept is noted when the first one
	// joins who keeps them there: from then on one who does not is ErrPlace, and so is that first
	// one as long as others live.
	Join(ctx context.Context, j Joining) (incarnation string, err error)
	// Renew prolongs the lease, which may have run out as long as nobody took it. ErrFenced when it
	// was taken away, ErrRewound when the store does not know the incarnation. With both errors the
	// Pulse has its Now, History and Kept.
	Renew(ctx context.Context, incarnation string, ttl time.Duration) (Pulse, error)
	// BeginHistory ends all incarnations, frees their shards and gives the store's history another
	// name. It does nothing when the history is not the known one: another member has begun a new
	// one already. It waits for batches under way, so nothing of the ended incarnations lands
	// afterwards. kept is the time up to which the store has what was confirmed, in Unix
	// milliseconds; 0 = the newest renewal of a lease that it has.
	BeginHistory(ctx context.Context, known string, kept int64) error
	// Drain reports whether the incarnation is to own no shards any longer, for instance because it
	// is about to go. It lives on; what it owns is its to release. ErrFenced when it has ended. On
	// a store that is Locked it does nothing.
	Drain(ctx context.Context, incarnation string, drains bool) error
	// Leave gives the incarnation's shards and its lease back: nothing of it lands from then on.
	// Once it has left, or was fenced, leaving does nothing.
	Leave(ctx context.Context, incarnation string) error
	// Cluster tells who lives, who was fenced or left not longer than Remembered ago, and who owns
	// which shard, as of one moment.
	Cluster(ctx context.Context) (*Cluster, error)
	// Claim takes shards that nobody owns, and tells in order which of those asked for the
	// incarnation owns now: what somebody else owns stays his. Of two that claim a shard at once
	// one gets it. ErrFenced when the incarnation may not write.
	Claim(ctx context.Context, incarnation string, shards []int) (owned []int, err error)
	// Release gives shards away, when nothing of the incarnation is under way that may still land;
	// those that are not its own stay as they are. Whoever is to have one owns it from that moment
	// on, if he lives, and else nobody does. On a store that is Locked it does nothing.
	Release(ctx context.Context, incarnation string, transfers []Transfer) error
	// Fence ends an incarnation whose lease has run out by the store's clock (MemberRow.Over): once
	// it is answered nothing of that one lands any more, and nobody owns its shards. False: its
	// lease runs. One that has ended already is true.
	Fence(ctx context.Context, incarnation string) (bool, error)
	// Moves tells, in order of time, which shards changed hands not longer than Remembered ago,
	// those together that went from one member to one other at once; no more than the last
	// MostMoves. Whoever had a shard and claims it back has not moved it. On a store that is Locked
	// there are none.
	Moves(ctx context.Context) ([]Move, error)
	// Secret is a random text that all who open the store are told, and that never changes: who
	// asks first has it made.
	Secret(ctx context.Context) (string, error)
	// ValuesAt is where large values are kept beside the store, as the last one has said who joined
	// and keeps them; "" = nobody does.
	ValuesAt(ctx context.Context) (string, error)
	// Locked says that nobody else can open what the store is kept in as long as this one is open.
	// Then a lease that is renewed late, because the machine is busy, has not been lost to anybody.
	Locked() bool
}

// Forgotten is how long a store keeps the row of a member that has gone, at least.
const Forgotten = 24 * time.Hour

// Remembered is how long members are told of that have gone.
const Remembered = 10 * time.Minute

// MostMoves is how many moves are told at once.
const MostMoves = 10_000

// Transfer is a shard that is given to somebody.
type Transfer struct {
	Shard int
	To    string // an incarnation; "" = nobody
}

// Move says that shards changed hands.
type Move struct {
	At       int64  // by the store's clock
	From, To string // incarnations; From "" = nobody had them before
	Shards   int
}

// Joining is what a member says of itself.
type Joining struct {
	Name    string // of the member, in logs and messages
	Cluster string // that it wants to belong to
	URL     string // where other members reach it; "" = nowhere
	Gossip  string // host and port where its gossip is heard; "" = nowhere
	Version string // of the program, for people; "" = not known
	Format  int    // of journals, the newest that it reads and writes; at least 1
	Seal    string // follows from the secret of the cluster, and does not tell it; those who live have the same
	Values  string // where it keeps large values, for people, with nothing in it that is secret; "" = in the store
	TTL     time.Duration
}

// Pulse is what a renewal tells.
type Pulse struct {
	Now        time.Time // of the store
	Generation int64     // of the cluster
	Format     int       // that journals are written in: all members read it

	Renewals int64     // of this lease, with this one; it grows by one with each
	Before   int64     // when the lease was renewed before, or begun, in Unix milliseconds
	History  string    // name of the store's history; see BeginHistory
	Kept     int64     // up to when the history has what was confirmed before it began, in Unix milliseconds; 0 = it is the store's first
	Takeover *Takeover // the last change of the server that this process has seen; nil = none
}

// Takeover says that the store is on another server than before, or on a state that the server did
// not have before.
type Takeover struct {
	Cause string // for people: what was seen
	Lost  bool   // something that this process was told to be stored is not there
}

// Cluster is who is there and who owns what.
type Cluster struct {
	Generation int64       // grows whenever members come, drain or go or shards change hands, and never else
	Now        int64       // by the store's clock
	Members    []MemberRow // in order of joining
	Owners     []string    // an incarnation for each shard; "" = nobody owns it
}

// MemberRow is one incarnation.
type MemberRow struct {
	Incarnation, Name, URL, Gossip, Version string

	Format   int   // of journals, the newest that it reads and writes
	JoinedAt int64 // later than that of everybody before it
	Until    int64 // when its lease runs out …
	TTL      int64 // … and for how long it was renewed; 0 on a store that is Locked
	FencedAt int64 // or left; 0 = it lives
	Draining bool  // it is to own no shards
}

// Left reports whether it went in order: its lease was running.
func (m MemberRow) Left() bool { return m.FencedAt > 0 && !m.Over(m.FencedAt) }

// Over reports whether its lease has run out. One that runs for much longer than it was renewed for
// was renewed before the store's clock was put back: its member has had the time to renew it again.
func (m MemberRow) Over(now int64) bool { return m.Until <= now || m.TTL > 0 && m.Until > now+2*m.TTL }

// Unsealed is what a member is told that has another secret than those who live.
func Unsealed() error {
	return fmt.Errorf("%w: its members have another secret: give all of them the same --cluster-secret-file, or none of them any", ErrStranger)
}

// Fits reports whether a member may join which reads and writes journals up to a format, where they
// are written in another, 0 = there are none. Alone it need not think of others.
func Fits(written, format int, alone bool) error {
	switch {
	case format < written:
		return fmt.Errorf("%w: journals are written in format %d, and this program knows up to %d: use a newer program", ErrFormat, written, format)
	case format > written+1 && !alone && written > 0:
		return fmt.Errorf("%w: members live here that know journals up to format %d, and this program writes %d and %d: upgrade by one release after the other, or stop all members first",
			ErrFormat, written, format-1, format)
	}
	return nil
}

// Stranger is what a member is told whose cluster has another name than the store's.
func Stranger(store, member string) error {
	return fmt.Errorf("%w: it is of cluster %q and this member of %q; give the member that name, or a store of its own", ErrStranger, store, member)
}

// Placed reports whether a member may join which keeps large values at some place, where others are
// noted to be at another; "" is in the store. Which of two addresses is that place its member has
// to find out.
func Placed(noted, member string, alone bool) error {
	switch {
	case noted != "" && member == "":
		return fmt.Errorf("%w: those of this store are at %s, and this member could not read them: give it --payload-store (TROUPE_PAYLOAD_STORE, Config.PayloadStore) with that place", ErrPlace, noted)
	case noted == "" && member != "" && !alone:
		return fmt.Errorf("%w: members live here that keep all values in the store, and could not read what this one keeps at %s: stop all members first, and give each of them --payload-store", ErrPlace, member)
	}
	return nil
}
