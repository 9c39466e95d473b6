package payload

import (
	"container/list"
	"sync"
	"time"
)

// cached is a content that was written or read lately.
type cached struct {
	of        string // task and hash
	ref       Ref
	content   []byte
	writtenAt time.Time // zero = it was read
}

// cache keeps the newest contents, so that a decision about what has just been reported reads nothing, and equal values of a task that come
// shortly after each other are one object.
type cache struct {
	mu     sync.Mutex
	most   int // bytes
	bytes  int
	newest *list.List
	byKey  map[string]*list.Element
}

func newCache(most int) *cache {
	return &cache{most: most, newest: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(of string) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[of]
	if el == nil {
		return cached{}, false
	}
	c.newest.MoveToFront(el)
	return el.Value.(cached), true
}

// put keeps a content, unless it is so large that it would drive out many others.
func (c *cache) put(v cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.byKey[v.of])
	if len(v.content) > c.most/4 {
		return
	}
	c.byKey[v.of] = c.newest.PushFront(v)
	for c.bytes += len(v.content); c.bytes > c.most; {
		c.drop(c.newest.Back())
	}
}

func (c *cache) drop(el *list.Element) {
	if el == nil {
		return
	}
	v := c.newest.Remove(el).(cached)
	delete(c.byKey, v.of)
	c.bytes -= len(v.content)
}
