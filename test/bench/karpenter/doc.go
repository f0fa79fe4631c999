// Package karpenter runs Karpenter with its kwok provider, built from its module, on a control
// plane without containers. Its tests have it act on CapacityBuffers, and compare what pods wait
// and nodes cost on a ramp with a buffer of Foresail's, with one of a fixed size, with none, and
// with a WorkerPool. A benchmark plays four loads to it and to WorkerPools at the same time.
//
// What Karpenter 1.14 makes of a CapacityBuffer, as far as Foresail's have to agree with it:
//
//   - It serves autoscaling.x-k8s.io/v1beta1 alone, and acts only with the feature gate CapacityBuffer.
//   - scalableRef takes Deployments, StatefulSets and ReplicaSets of apps, whose pod template it reads: no pod has to run. The size is the
//     larger of replicas and percentage, and at most what limits allow; 0 is a size.
//   - status.replicas is the size that is asked for, at once. The condition Provisioning is True, FitsExistingCapacity, when there is room for
//     all of it, on instances without a Node too.
//   - The pods of a buffer come on top of those that run: they are placed beside real ones whenever Karpenter looks, which is when the buffer
//     changes, a pod finds no node, or 30 s have passed. Pods that find room have nothing looked at.
//   - A node that has room for a buffer is not empty. When a buffer is deleted nothing looks, and its nodes stay until something does; one of
//     size 0 lets them go.
package karpenter
