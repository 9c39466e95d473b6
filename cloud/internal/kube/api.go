package kube

import "time"

// The used parts of requests to Kubernetes and its answers: parts of batch/v1 and v1.

type objectMeta struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp *time.Time        `json:"creationTimestamp,omitempty"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
}

type kubeJob struct {
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Metadata   objectMeta `json:"metadata"`
	Spec       jobSpec    `json:"spec"`
	Status     jobStatus  `json:"status,omitzero"`
}

type jobSpec struct {
	BackoffLimit          int         `json:"backoffLimit"`
	ActiveDeadlineSeconds int64       `json:"activeDeadlineSeconds,omitempty"`
	Template              podTemplate `json:"template"`
}

type podTemplate struct {
	Metadata objectMeta `json:"metadata"`
	Spec     podSpec    `json:"spec"`
}

type podSpec struct {
	RestartPolicy      string         `json:"restartPolicy,omitempty"`
	ServiceAccountName string         `json:"serviceAccountName,omitempty"`
	Containers         []podContainer `json:"containers"`
}

type podContainer struct {
	Name            string        `json:"name"`
	Image           string        `json:"image"`
	ImagePullPolicy string        `json:"imagePullPolicy,omitempty"`
	Command         []string      `json:"command,omitempty"`
	Args            []string      `json:"args,omitempty"`
	Env             []envVariable `json:"env,omitempty"`
	Resources       resourceLists `json:"resources,omitzero"`
}

type envVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type resourceLists struct {
	Limits   map[string]string `json:"limits,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

type jobStatus struct {
	Conditions []jobCondition `json:"conditions,omitempty"`
}

type jobCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type jobList struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []kubeJob `json:"items"`
}

type podList struct {
	Items []pod `json:"items"`
}

type pod struct {
	Metadata objectMeta `json:"metadata"`
	Status   struct {
		Phase             string `json:"phase"`
		Reason            string `json:"reason"`
		Message           string `json:"message"`
		ContainerStatuses []struct {
			Name  string `json:"name"`
			State struct {
				Waiting    *waitingState    `json:"waiting"`
				Running    *runningState    `json:"running"`
				Terminated *terminatedState `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

type waitingState struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type runningState struct {
	StartedAt *time.Time `json:"startedAt"`
}

type terminatedState struct {
	ExitCode  int        `json:"exitCode"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message"`
	StartedAt *time.Time `json:"startedAt"`
}

// apiStatus is an error answer.
type apiStatus struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
}
