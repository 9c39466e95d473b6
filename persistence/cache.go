package persistence

import "container/list"

// cache keeps what was used last, up to a number of bytes. Its owner guards it.
type cache[V any] struct {
	most  int // bytes
	bytes int
	of    map[string]*list.Element
	byUse list.List // of *cached[V], last used first
}

type cached[V any] struct {
	key   string
	value V
	bytes int
}

// perEntry is what an entry takes beside its value.
const perEntry = 256

func newCache[V any](most int) *cache[V] {
	return &cache[V]{most: most, of: map[string]*list.Element{}}
}

func (c *cache[V]) get(key string) (value V, ok bool) {
	e := c.of[key]
	if e == nil {
		return value, false
	}
	c.byUse.MoveToFront(e)
	return e.Value.(*cached[V]).value, true
}

// put keeps a value in the place of what has not been used for longest. One that is larger than all of the
// cache is not kept.
func (c *cache[V]) put(key string, value V, bytes int) {
	c.drop(key)
	bytes += len(key) + perEntry
	if bytes > c.most {
		return
	}
	for c.bytes+bytes > c.most {
		c.drop(c.byUse.Back().Value.(*cached[V]).key)
	}
	c.of[key] = c.byUse.PushFront(&cached[V]{key, value, bytes})
	c.bytes += bytes
}

func (c *cache[V]) clear() {
	clear(c.of)
	c.byUse.Init()
	c.bytes = 0
}

func (c *cache[V]) drop(key string) {
	if e := c.of[key]; e != nil {
		c.bytes -= c.byUse.Remove(e).(*cached[V]).bytes
		delete(c.of, key)
	}
}
