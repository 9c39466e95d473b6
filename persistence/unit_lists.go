package persistence

import (
	"strconv"
	"sync"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence/internal/lru"
)

// unitLists caches recently read units of visits that have ended. These lists never change, so
// several readers may share one.
type unitLists struct {
	mu   sync.Mutex
	kept *lru.Cache[*flow.UnitList]
}

// maxListBytes bounds the memory of cached lists. unitCost is the memory of a unit in addition to
// its values.
const (
	maxListBytes = 64 << 20
	unitCost     = 100
)

func (u *unitLists) get(task string, at flow.Address) *flow.UnitList {
	u.mu.Lock()
	defer u.mu.Unlock()
	l, _ := u.kept.Get(listKey(task, at))
	return l
}

func (u *unitLists) put(task string, at flow.Address, l *flow.UnitList, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kept.Put(listKey(task, at), l, bytes)
}

func (u *unitLists) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kept.Clear()
}

func listKey(task string, at flow.Address) string {
	return task + "\n" + at.Scope + "\n" + at.Node + "\n" + strconv.Itoa(at.Visit)
}
