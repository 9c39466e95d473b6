// Package gossip lets members detect each other sooner than through the store. Only this package
// knows the gossip library.
//
// Gossip decides nothing, and only makes members read the store. Messages from another cluster, or
// with an unknown key, change nothing and are logged once for each sender.
package gossip
