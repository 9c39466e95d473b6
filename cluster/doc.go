// Package cluster makes several members on one PostgreSQL database act as one engine. It tracks the
// members and the owners of tasks, and sends requests to those owners.
//
// Promises about membership:
//
//   - The store decides; gossip only gives hints. A shard is owned by the incarnation in the store.
//     No message or silence of another member takes anything from any member; it only makes members
//     read the store earlier.
//   - A shard is claimed only when it has no owner. Its owner either releases it after handing over
//     its tasks, or is fenced, which the store does only after its lease has expired.
//   - After an outage of the store a member holds its own lease for a full TTL before it fences
//     others, so that they have had the time to renew theirs.
//   - The reaction of a member to a view is a pure function of that view (Decide). No member claims
//     more than its share. A joiner gets the shards that others have beyond their shares, and only
//     the shards of a member that is gone move otherwise.
//   - A View does not change. It is published before a member learns which shards it has gained or
//     which members are gone.
//
// Promises about requests between members (Router, Peers, Service):
//
//   - A request to a Router is answered by the member that owns the task, wherever that is. A
//     repeated request has the same request id, so it has no second effect. A member that cannot be
//     reached is retried until the caller's deadline.
//   - A slow request or a hanging member blocks no other requests. The queue of messages to send is
//     bounded.
//   - A member answers only requests for its own incarnation, in its own cluster, from members that
//     prove to have the cluster's secret. It sends requests only to members that prove the same to
//     it. The secret itself is never sent, and a proof is valid once.
//
// Everything started here ends with its Close, or with the context it was given.
package cluster
