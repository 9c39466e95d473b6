package persistence

import "context"

// Hooks stores the hooks through which other systems start and signal tasks, and the deliveries
// received so far.
type Hooks interface {
	// PutHook writes a hook. Revision must be the stored one plus 1, or 1 for a new hook. It
	// returns ErrStale if another write came in between.
	PutHook(ctx context.Context, h Hook) error
	Hook(ctx context.Context, name string) (*Hook, error) // returns ErrNotFound if there is none
	// ListHooks returns hooks in order of name, starting after the given name.
	ListHooks(ctx context.Context, after string, limit int) ([]Hook, error)
	// DeleteHook deletes a hook, or returns ErrNotFound. It keeps the known deliveries, so a new
	// hook with the same name does not repeat them.
	DeleteHook(ctx context.Context, name string) error

	// BeginDelivery records a delivery. If the delivery is already known, it returns the stored
	// one; otherwise known is nil.
	BeginDelivery(ctx context.Context, d Delivery) (known *Delivery, err error)
	// EndDelivery stores the answer to a delivery. A stored answer is never replaced.
	EndDelivery(ctx context.Context, hook, id string, answer []byte) error
	// ForgetDeliveries deletes up to limit deliveries whose Until is before the given time.
	ForgetDeliveries(ctx context.Context, before int64, limit int) (int, error)
}

// Hook starts or signals tasks when a delivery arrives that is signed with one of its secrets.
type Hook struct {
	Name      string
	Settings  []byte       // JSON, in the format of flow/hook
	Secrets   []HookSecret // newest first
	Disabled  bool
	Revision  int64
	CreatedAt int64
	UpdatedAt int64
}

// HookSecret is a secret that deliveries are signed with. It is stored in plain text, because
// checking a signature needs the secret itself.
type HookSecret struct {
	Text  string `json:"text"`
	Until int64  `json:"until,omitempty"` // Unix milliseconds; 0 means no end
}

// String hides the secret in logs and messages.
func (HookSecret) String() string { return "(a secret)" }

// GoString hides the secret in %#v output.
func (HookSecret) GoString() string { return "(a secret)" }

// Delivery is one message to a hook.
type Delivery struct {
	Hook, ID string
	// hash of the body; distinguishes a repeated delivery from a different one with the same id
	Digest string
	Task   string // task to start or signal
	Answer []byte // nil means that no answer is stored
	At     int64
	Until  int64 // time after which the delivery may be deleted
}
