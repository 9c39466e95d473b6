// Package cluster makes several members over one PostgreSQL act as one engine: who is there, and
// who owns which tasks.
//
// What it promises about membership:
//
//   - The store decides, gossip hints. A shard is owned by the incarnation that the store says. Nothing that is heard
//     from another member, or not heard, takes anything from anybody: it makes a member look at the store earlier, that
//     is all.
//   - A shard is claimed only when nobody owns it. Its owner gives it back after it has handed its tasks over, or has
//     been fenced, which the store does only when its lease has run out.
//   - After an outage of the store a member holds its own lease for a full time to live before it fences others: they
//     have had the time to renew theirs.
//   - What a member does about a view is a pure function of that view (Decide). Nobody claims more than its share, the
//     shards of a joiner are those that others have beyond theirs, and those of a member that has gone are all that moves.
//   - A View does not change. It is published before a member is told what it gained, or who has gone.
//   - What gossip hears from strangers (another cluster, a key that is not in the ring) changes nothing, and is
//     logged once for each of them.
//
// And about asking each other (Router, Peers, Service):
//
//   - What is asked of a Router is answered by the member that owns the task, wherever that is. What is sent again has the same
//     request id, so it has no second effect. A member that cannot be asked is tried until the caller's deadline.
//   - A question that takes long, and a member that hangs, hold up nobody else. What waits to be sent is bounded.
//   - A member answers only for its own incarnation, in its own cluster, and only who proves to have the cluster's secret; it asks
//     only who proves the same. The secret does not travel, and a proof is good once.
//
// Everything that is started here ends with its Close, or with the context it was given.
package cluster
