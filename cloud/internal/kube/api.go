package kube

import "time"

// What is asked of Kubernetes, and what it answers, as far as we look at it: parts of batch/v1 and
// v1.

type meta struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp *time.Time        `json:"creationTimestamp,omitempty"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
}

type job struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Metadata   meta      `json:"metadata"`
	Spec       jobSpec   `json:"spec"`
	Status     jobStatus `json:"status,omitzero"`
}

type jobSpec struct {
	BackoffLimit          int      `json:"backoffLimit"`
	ActiveDeadlineSeconds int64    `json:"activeDeadlineSeconds,omitempty"`
	Template              template `json:"template"`
}

type template struct {
	Metadata meta    `json:"metadata"`
	Spec     podSpec `json:"spec"`
}

type podSpec struct {
	RestartPolicy      string      `json:"restartPolicy,omitempty"`
	ServiceAccountName string      `json:"serviceAccountName,omitempty"`
	Containers         []container `json:"containers"`
}

type container struct {
	Name            string     `json:"name"`
	Image           string     `json:"image"`
	ImagePullPolicy string     `json:"imagePullPolicy,omitempty"`
	Command         []string   `json:"command,omitempty"`
	Args            []string   `json:"args,omitempty"`
	Env             []variable `json:"env,omitempty"`
	Resources       resources  `json:"resources,omitzero"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type resources struct {
	Limits   map[string]string `json:"limits,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

type jobStatus struct {
	Conditions []condition `json:"conditions,omitempty"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type jobList struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []job `json:"items"`
}

type podList struct {
	Items []pod `json:"items"`
}

type pod struct {
	Metadata meta `json:"metadata"`
	Status   struct {
		Phase             string `json:"phase"`
		Reason            string `json:"reason"`
		Message           string `json:"message"`
		ContainerStatuses []struct {
			Name  string `json:"name"`
			State struct {
				Waiting    *waiting    `json:"waiting"`
				Running    *running    `json:"running"`
				Terminated *terminated `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

type waiting struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type running struct {
	StartedAt *time.Time `json:"startedAt"`
}

type terminated struct {
	ExitCode  int        `json:"exitCode"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message"`
	StartedAt *time.Time `json:"startedAt"`
}

// status is how an error is answered.
type status struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
}
