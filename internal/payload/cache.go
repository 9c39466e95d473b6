package payload

import (
	"container/list"
	"sync"
	"time"
)

// cacheEntry is a content that was written or read lately.
type cacheEntry struct {
	contentKey string // task and hash
	ref        Ref
	content    []byte
	writtenAt  time.Time // zero = it was read
}

// contentCache keeps the newest contents, so that a decision about what has just been reported
// reads nothing, and equal values of a task that come shortly after each other are one object.
type contentCache struct {
	mu       sync.Mutex
	maxBytes int // bytes
	bytes    int
	newest   *list.List
	byKey    map[string]*list.Element
}

func newCache(most int) *contentCache {
	return &contentCache{maxBytes: most, newest: list.New(), byKey: map[string]*list.Element{}}
}

func (c *contentCache) getEntry(of string) (cacheEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[of]
	if el == nil {
		return cacheEntry{}, false
	}
	c.newest.MoveToFront(el)
	return el.Value.(cacheEntry), true
}

// putEntry keeps a content, unless it is so large that it would drive out many others.
func (c *contentCache) putEntry(v cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeEntry(c.byKey[v.contentKey])
	if len(v.content) > c.maxBytes/4 {
		return
	}
	c.byKey[v.contentKey] = c.newest.PushFront(v)
	for c.bytes += len(v.content); c.bytes > c.maxBytes; {
		c.removeEntry(c.newest.Back())
	}
}

func (c *contentCache) removeEntry(el *list.Element) {
	if el == nil {
		return
	}
	v := c.newest.Remove(el).(cacheEntry)
	delete(c.byKey, v.contentKey)
	c.bytes -= len(v.content)
}
