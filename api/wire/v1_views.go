package wire

// View is a named list of tasks. All callers see it.
type View struct {
	Name      string `json:"name" example:"failed of late"`
	Query     string `json:"query" doc:"of the page of tasks: /ui/tasks?QUERY" example:"state=failed&since=24h"`
	UpdatedAt Time   `json:"updated_at"`
	UpdatedBy string `json:"updated_by,omitempty" doc:"name of the token by which it was set"`
}

// SetView is a request to set a view.
type SetView struct {
	Query string `json:"query" maxLength:"4000" doc:"of the page of tasks: /ui/tasks?QUERY" example:"state=failed&since=24h"`
}
