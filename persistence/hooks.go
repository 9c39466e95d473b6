package persistence

import "context"

// Hooks keeps by what others outside start tasks and signal them, and which deliveries have come.
type Hooks interface {
	// PutHook writes a hook. Its Revision is 1 for one that is not there, and else one more than
	// what is stored: ErrStale when somebody else has written it meanwhile.
	PutHook(ctx context.Context, h Hook) error
	Hook(ctx context.Context, name string) (*Hook, error) // ErrNotFound
	// ListHooks lists hooks in order of name after a given one.
	ListHooks(ctx context.Context, after string, limit int) ([]Hook, error)
	// DeleteHook leaves what is known of deliveries: a hook of the same name does not carry them
	// out again. ErrNotFound.
	DeleteHook(ctx context.Context, name string) error

	// BeginDelivery notes a delivery unless it is known: then it tells what is known of it, else
	// nil.
	BeginDelivery(ctx context.Context, d Delivery) (known *Delivery, err error)
	// EndDelivery notes what a delivery came to. The first answer stays.
	EndDelivery(ctx context.Context, hook, id string, answer []byte) error
	// ForgetDeliveries deletes up to limit deliveries that are remembered until before a time.
	ForgetDeliveries(ctx context.Context, before int64, limit int) (int, error)
}

// Hook is what starts tasks, or signals them, when a delivery comes that is signed with one of its
// secrets.
type Hook struct {
	Name      string
	Settings  []byte       // JSON, as flow/hook reads it
	Secrets   []HookSecret // the newest first
	Disabled  bool
	Revision  int64
	CreatedAt int64
	UpdatedAt int64
}

// HookSecret is what deliveries are signed with. It is kept as it is, since nothing less can check
// a signature.
type HookSecret struct {
	Text  string `json:"text"`
	Until int64  `json:"until,omitempty"` // Unix milliseconds; 0 = for good
}

// String keeps the secret out of logs and messages.
func (HookSecret) String() string { return "(a secret)" }

// GoString does, too.
func (HookSecret) GoString() string { return "(a secret)" }

// Delivery is one message to a hook.
type Delivery struct {
	Hook, ID string
	Digest   string // of its body, to tell a repeated delivery from another one under the same id
	Task     string // that it is to start, or to signal
	Answer   []byte // nil = it has not been carried out, as far as is known
	At       int64
	Until    int64 // it may be forgotten then
}
