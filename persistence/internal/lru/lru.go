// Package lru implements a cache that keeps the most recently used values, up to a number of bytes.
// A Cache is not safe for concurrent use.
package lru

import "container/list"

// Cache keeps values by key.
type Cache[V any] struct {
	most  int // limit in bytes
	bytes int
	of    map[string]*list.Element
	byUse list.List // values of type *cacheEntry[V], most recently used first
}

type cacheEntry[V any] struct {
	key   string
	value V
	bytes int
}

// perEntry is the memory of an entry in addition to its value, in bytes.
const perEntry = 256

// New returns a cache that keeps up to most bytes.
func New[V any](most int) *Cache[V] {
	return &Cache[V]{most: most, of: map[string]*list.Element{}}
}

// Get returns a value and marks it as used.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	e := c.of[key]
	if e == nil {
		return value, false
	}
	c.byUse.MoveToFront(e)
	return e.Value.(*cacheEntry[V]).value, true
}

// Put stores a value and removes the least recently used values to make room. A value larger than
// the whole cache is not stored.
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

// Clear removes all values.
func (c *Cache[V]) Clear() {
	clear(c.of)
	c.byUse.Init()
	c.bytes = 0
}

// Drop removes a value, if it exists.
func (c *Cache[V]) Drop(key string) {
	if e := c.of[key]; e != nil {
		c.bytes -= c.byUse.Remove(e).(*cacheEntry[V]).bytes
		delete(c.of, key)
	}
}
