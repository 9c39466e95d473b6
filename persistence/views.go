package persistence

import "context"

// Views keeps what people have chosen to see again.
type Views interface {
	// SetView keeps a view in place of the one of its name, if there is one.
	SetView(ctx context.Context, v SavedView) error
	// ListViews lists all of them in order of name.
	ListViews(ctx context.Context) ([]SavedView, error)
	DeleteView(ctx context.Context, name string) error // ErrNotFound
}

// SavedView is a list of tasks with a name.
type SavedView struct {
	Name      string
	Query     string // of the page of tasks
	UpdatedAt int64
	UpdatedBy string
}
