package wire

// View is a saved view of the task list, which all callers share.
type View struct {
	Name      string `json:"name" example:"failed of late" doc:"Name of the view."`
	Query     string `json:"query" doc:"Query of the tasks page: /ui/tasks?QUERY" example:"state=failed&since=24h"`
	UpdatedAt Time   `json:"updated_at" doc:"Time of the last change."`
	UpdatedBy string `json:"updated_by,omitempty" doc:"Name of the token that set it."`
}

// ViewSettings is a request to set a view.
type ViewSettings struct {
	Query string `json:"query" maxLength:"4000" doc:"Query of the tasks page: /ui/tasks?QUERY" example:"state=failed&since=24h"`
}
