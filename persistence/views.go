package persistence

import "context"

// Views stores saved views of the task list.
type Views interface {
	// SetView stores a view and replaces a view with the same name.
	SetView(ctx context.Context, v SavedView) error
	// ListViews returns all views in order of name.
	ListViews(ctx context.Context) ([]SavedView, error)
	DeleteView(ctx context.Context, name string) error // returns ErrNotFound if there is none
}

// SavedView is a named query of the task list.
type SavedView struct {
	Name      string
	Query     string // query of the task list page
	UpdatedAt int64
	UpdatedBy string
}
