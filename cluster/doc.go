// Package cluster makes several members over one PostgreSQL act as one engine: who is there, and who owns which
// tasks.
//
// What it promises about membership:
//
//   - The store decides, gossip hints. Nothing that is heard from another member, or not heard, takes anything from
//     anybody: it makes a member look at the store earlier, that is all.
//   - What gossip hears from strangers (another cluster, a key that is not in the ring) changes nothing, and is
//     logged once for each of them.
//
// Everything that is started here ends with its Close, or with the context it was given.
package cluster
