// Package gossip lets members notice each other sooner than by the store. It is the only package
// that knows the gossip library.
//
// Promises: what gossip says decides nothing; it only makes members look into the store. Messages
// from strangers, of another cluster or with a key that is not in the ring, change nothing and are
// logged once for each stranger.
package gossip
