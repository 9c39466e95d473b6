package troupe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// payloadOver is how many bytes a value may have in the store, when nothing else is said and there
// is somewhere else to keep it.
const payloadOver = 64 << 10

// unheldAge is how old an object is at least that is deleted because nothing refers to it: whoever
// has written it may be about to store that.
var unheldAge = time.Hour

// sweptAfter is how old an object is at least that the sweep deletes, which looks at those of
// tasks, too, that never began.
const sweptAfter = 10 * time.Hour

// openPayloads opens the bucket for large values, if the member has one.
func (c *Config) openPayloads(ctx context.Context) (objects.Bucket, error) {
	switch {
	case c.PayloadOver < 0:
		return nil, errors.New("values cannot be larger than less than nothing (--payload-over)")
	case c.PayloadStore == "" && c.PayloadOver > 0:
		return nil, errors.New("there is nowhere to keep values of more bytes (--payload-over): say where with --payload-store")
	case c.PayloadStore == "":
		return nil, nil
	}
	bucket, err := objects.Open(ctx, c.PayloadStore, c.Buckets)
	if err != nil {
		return nil, fmt.Errorf("--payload-store: %w", err)
	}
	return bucket, nil
}

// newPayloads keeps large values of the tasks of a store in a bucket.
func newPayloads(ctx context.Context, cfg *Config, bucket objects.Bucket, store persistence.Store) (*payload.Store, error) {
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("the secret of the store: %w", err)
	}
	over := cfg.PayloadOver
	if over == 0 {
		over = payloadOver
	}
	values := payload.New(payload.Options{Bucket: bucket, Secret: secret, Over: over, Most: cfg.Limits.OrDefault().Shared})
	return values, checkPayloadPlace(ctx, cfg, values, store)
}

// settleFor is for how long a member that starts waits for the place where the store's values are.
// When that does not answer it starts nevertheless: much may be done without.
var settleFor = 5 * time.Second

// checkPayloadPlace finds out whether the place of large values is the store's.
func checkPayloadPlace(ctx context.Context, cfg *Config, values *payload.Store, store persistence.Store) error {
	at := cfg.valuesAt()
	noted, err := store.ValuesAt(ctx)
	if err != nil {
		return fmt.Errorf("--payload-store: %w", err)
	}
	if noted == at {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, settleFor)
		defer cancel()
	}
	err = values.Settle(ctx, at, noted)
	switch {
	case err != nil && noted == at && errors.Is(err, payload.ErrAway):
		cfg.Logger.Warn("the place of large values does not answer: what needs one of them waits", "error", err)
	case err != nil:
		return fmt.Errorf("--payload-store: %w", err)
	}
	return nil
}

// valuesAt is where large values are kept, for people; "" = in the store.
func (c *Config) valuesAt() string {
	if c.PayloadStore == "" {
		return ""
	}
	return objects.Shown(c.PayloadStore)
}

// payloadsOf is what a member keeps large values with; nil = it does not.
func (e *Engine) payloadsOf() actors.Payloads {
	if e.payloads == nil {
		return nil
	}
	return e.payloads
}

// withPayloads is a store that has the values of tasks deleted with them which are kept in a
// bucket. The tasks go first, so that nobody can refer to their values any more: should it be cut
// short then, the sweep finds what is left.
type withPayloads struct {
	persistence.Store
	bucket objects.Bucket
	log    *slog.Logger
}

func (s withPayloads) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	ends, err := s.EndedBetween(ctx, 0, before, limit)
	if err != nil {
		return 0, err
	}
	n, err := s.Store.DeleteEnded(ctx, before, limit)
	if err == nil {
		for _, end := range ends {
			s.tidySoon(ctx, end.ID)
		}
	}
	return n, err
}

func (s withPayloads) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	tasks, err := s.ListTasks(ctx, persistence.TaskFilter{FlowID: id, Limit: limit})
	if err != nil {
		return 0, err
	}
	n, err := s.Store.DeleteFlow(ctx, id, limit)
	if err == nil {
		for i := range tasks {
			s.tidySoon(ctx, tasks[i].ID)
		}
	}
	return n, err
}

// tidySoon tidies up what the sweep would find otherwise.
func (s withPayloads) tidySoon(ctx context.Context, owner string) {
	if err := s.deleteUnheld(ctx, owner, time.Now().Add(-unheldAge)); err != nil && ctx.Err() == nil {
		s.log.Warn("values of a deleted task stay until the next sweep", "values", s.bucket.Address(payload.Folder(owner)), "error", err)
	}
}

// deleteUnheld deletes the values of a task that is gone which were written before a time, but for
// those that others hold.
func (s withPayloads) deleteUnheld(ctx context.Context, owner string, before time.Time) error {
	gone, err := s.Gone(ctx, []string{owner})
	if err != nil || len(gone) == 0 {
		return err
	}
	held, err := s.Held(ctx, owner)
	if err != nil {
		return err
	}
	list, err := s.bucket.List(ctx, payload.Folder(owner))
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o objects.Object) bool {
		_, kept := slices.BinarySearch(held, o.Key[len(payload.Folder(owner)):])
		return kept || !o.Written.Before(before)
	})
	if err := s.removeObjects(ctx, list); err != nil {
		return err
	}
	if folder, ok := s.bucket.(tidyBucket); ok {
		return folder.Tidy(ctx, payload.Folder(owner), before)
	}
	return nil
}

// tidyBucket is a bucket in which a crash may leave more than objects.
type tidyBucket interface {
	Tidy(ctx context.Context, prefix string, before time.Time) error
}

// removedAtOnce is how many objects are being deleted at the same time.
const removedAtOnce = 16

func (s withPayloads) removeObjects(ctx context.Context, list []objects.Object) error {
	var all sync.WaitGroup
	errs, places := make([]error, len(list)), make(chan struct{}, removedAtOnce)
	for i, o := range list {
		places <- struct{}{}
		all.Go(func() {
			errs[i] = s.bucket.Remove(ctx, o.Key)
			<-places
		})
	}
	all.Wait()
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })...)
}

// How many holds are dropped, and folders looked at, at once.
const sweptTogether = 1000

// sweepValues deletes the values that nothing refers to and that were written before a time: those
// of tasks that are gone, or never began, which no other task holds.
func (s withPayloads) sweepValues(ctx context.Context, before int64) (more bool, err error) {
	for more := true; more; {
		owners, err := s.DropHolds(ctx, before, sweptTogether)
		if err != nil {
			return false, err
		}
		more = len(owners) == sweptTogether
	}
	folders, err := s.bucket.Folders(ctx, payload.Folders)
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(folders, sweptTogether) {
		gone, err := s.Gone(ctx, some)
		if err != nil {
			return false, err
		}
		for _, owner := range gone {
			if err := s.deleteUnheld(ctx, owner, time.UnixMilli(before)); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
