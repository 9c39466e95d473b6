// Package lru keeps what was used last, up to a number of bytes. A Cache is not safe for concurrent
// use: its owner guards it.
package lru

import "container/list"

// Cache keeps values by key.
type Cache[V any] struct {
	most  int // bytes
	bytes int
	of    map[string]*list.Element
	byUse list.List // of *entry[V], last used first
}

type cacheEntry[V any] struct {
	key   string
	value V
	bytes int
}

// perEntry is what an entry takes beside its value.
const perEntry = 256

// New makes a cache that keeps up to so many bytes.
func New[V any](most int) *Cache[V] {
	return &Cache[V]{most: most, of: map[string]*list.Element{}}
}

// Get tells a value, which counts as its use.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	e := c.of[key]
	if e == nil {
		return value, false
	}
	c.byUse.MoveToFront(e)
	return e.Value.(*cacheEntry[V]).value, true
}

// Put keeps a value in the place of what has not been used for longest. One that is larger than all
// of the cache is not kept.
func (c *Cache[V]) Put(key string, value V, bytes int) {
	c.Drop(key)
	bytes += len(key) + perEntry
	if bytes > c.most {
		return
	}
	for c.bytes+bytes > c.most {
		c.Drop(c.byUse.Back().Value.(*cacheEntry[V]).key)
	}
	c.of[key] = c.byUse.PushFront(&cacheEntry[V]{key, value, bytes})
	c.bytes += bytes
}

// Clear forgets all values.
func (c *Cache[V]) Clear() {
	clear(c.of)
	c.byUse.Init()
	c.bytes = 0
}

// Drop forgets a value, if it is there.
func (c *Cache[V]) Drop(key string) {
	if e := c.of[key]; e != nil {
		c.bytes -= c.byUse.Remove(e).(*cacheEntry[V]).bytes
		delete(c.of, key)
	}
}
