package payload

import (
	"container/list"
	"sync"
	"time"
)

// cacheEntry is a recently written or read content.
type cacheEntry struct {
	contentKey string // task and hash
	ref        Ref
	content    []byte
	writtenAt  time.Time // zero if the content was read
}

// contentCache keeps recently used contents in memory. A decision about a new report then rarely
// reads the bucket, and equal values that a task writes within a short time share one object.
type contentCache struct {
	mu       sync.Mutex
	maxBytes int
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

// putEntry adds a content, unless it is so large that it would evict many others.
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
