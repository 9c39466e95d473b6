package wire

// View is a list of tasks that somebody has given a name. All see it.
type View struct {
	Name      string `json:"name" example:"failed of late"`
	Query     string `json:"query" doc:"of the page of tasks: /ui/tasks?QUERY" example:"state=failed&since=24h"`
	UpdatedAt Time   `json:"updated_at"`
	UpdatedBy string `json:"updated_by,omitempty" doc:"name of the token by which it was set"`
}

// SetView sets a view.
type SetView struct {
	Query string `json:"query" maxLength:"4000" doc:"of the page of tasks: /ui/tasks?QUERY" example:"state=failed&since=24h"`
}
