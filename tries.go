package troupe

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/api"
)

// triedFor is how long a tried definition is kept with its task. triesAtOnce is how many are
// deleted at once.
const (
	triedFor    = 24 * time.Hour
	triesAtOnce = 20
)

// forgetTried deletes definitions that were tried before a time, with their tasks, even running
// ones. A failed deletion does not stop the others.
func (e *Engine) forgetTried(ctx context.Context, before int64) (more bool, err error) {
	asked := e.currentEngine.Load()
	if asked == nil {
		return false, nil
	}
	flows, err := e.stores.Newest.ListTried(ctx, before, triesAtOnce)
	if err != nil {
		return false, err
	}
	var failed error
	for i := range flows {
		_, err := api.DeleteFlow(ctx, *asked, e.stores.Newest, flows[i].ID)
		failed = errors.Join(failed, err)
	}
	return len(flows) == triesAtOnce, failed
}
