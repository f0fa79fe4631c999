// Package simulated plays a cloud whose instances exist in the Kubernetes API alone, for trying pools out where kwok plays
// the kubelets. It is a cloud and no more: it knows nothing of pools but their names.
//
// Each instance is a ConfigMap, named by the instance's id, which follows from the token of the launch: the API server
// itself refuses a second instance of one token, whoever asks at the same time. [Cloud.Step] is what time does in such a
// cloud: instances begin to run, their Nodes join, and what is terminated stops. Any number of processes may take steps.
//
// What goes wrong in clouds goes wrong here on demand. Annotations of an instance's ConfigMap say so of one instance,
// the ConfigMap [FaultsName] in the same namespace of all.
package simulated
