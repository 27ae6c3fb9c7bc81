import { Effect, Stream } from "effect"
import {
  type ApiError,
  apiError,
  type Backend,
  type HealthCheck,
  type LoadedModel,
  type ModelPlan,
  PortError,
  StorageFull,
  type Task,
} from "../../core/index.ts"
import type { NextFault } from "./script.ts"
import type { Fault, Port } from "./settings.ts"

export interface Injection {
  readonly next: NextFault
  /** Called for each fault, before it shows. */
  injected(port: Port, operation: string, fault: Fault): void
  /** Ends the process as `kill -9` does. */
  exit(): void
}

const text = (operation: string) => `injected by the plugin chaos (${operation})`

const errorOf = ({ fault, port }: Fault, operation: string): unknown => {
  const message = text(operation)
  if (port === "health") return message
  if (port === "model")
    return apiError(fault === "disconnect" ? "backend_timeout" : "backend_error", message)
  if (fault === "full" && port === "storage") return new StorageFull({ key: message })
  return new PortError({
    port,
    message,
    ...(fault === "full" && { why: "full" as const }),
    ...(fault === "disconnect" && { why: "unavailable" as const }),
  })
}

/** What the call ends with instead of its result. */
const failureOf = (
  fault: Fault,
  operation: string,
  { exit }: Injection,
): Effect.Effect<never, unknown> =>
  Effect.suspend(() => {
    if (fault.fault === "exit") exit()
    return fault.fault === "crash"
      ? Effect.die(new Error(text(operation)))
      : Effect.fail(errorOf(fault, operation))
  })

const aroundEffect = <A, E, R>(
  call: Effect.Effect<A, E, R>,
  port: Port,
  operation: string,
  injection: Injection,
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const fault = injection.next(port, operation)
    if (!fault) return call
    injection.injected(port, operation, fault)
    return fault.fault === "slow"
      ? Effect.andThen(Effect.sleep(fault.delayMs), call)
      : (failureOf(fault, operation, injection) as Effect.Effect<never, E>)
  })

const aroundStream = <A, E>(
  items: Stream.Stream<A, E>,
  port: Port,
  operation: string,
  injection: Injection,
): Stream.Stream<A, E> =>
  Stream.suspend(() => {
    const fault = injection.next(port, operation)
    if (!fault) return items
    injection.injected(port, operation, fault)
    if (fault.fault === "slow") return Stream.tap(items, () => Effect.sleep(fault.delayMs))
    const end = Stream.fromEffect(failureOf(fault, operation, injection) as Effect.Effect<never, E>)
    return fault.items === 0 ? end : Stream.concat(Stream.take(items, fault.items), end)
  })

const around = (result: unknown, port: Port, operation: string, injection: Injection): unknown => {
  if (Effect.isEffect(result))
    return aroundEffect(result as Effect.Effect<unknown>, port, operation, injection)
  if (Stream.isStream(result))
    return aroundStream(result as Stream.Stream<unknown>, port, operation, injection)
  return result
}

/** The same port; what its operations return may have a fault when it runs. */
export const withFaults = <T extends object>(value: T, port: Port, injection: Injection): T =>
  new Proxy(value, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== "function" || typeof name !== "string") return member
      return (...args: unknown[]) =>
        around(Reflect.apply(member, target, args), port, name, injection)
    },
  })

/** A check of `/readyz` that may fail. */
export const checkWithFaults = (
  { name, check }: HealthCheck,
  injection: Injection,
): HealthCheck => ({ name, check: aroundEffect(check, "health", name, injection) })

const taskWithFaults = <Request, Event>(
  task: Task<Request, Event>,
  injection: Injection,
): Task<Request, Event> => ({
  plan: (request, context) =>
    Effect.map(
      aroundEffect(task.plan(request, context), "model", "plan", injection),
      (plan): ModelPlan<Event> => ({
        ...plan,
        run: aroundStream<Event, ApiError>(plan.run, "model", "run", injection),
      }),
    ),
})

/** A backend whose models may have faults when they are opened, planned and run. */
export const backendWithFaults = (backend: Backend, injection: Injection): Backend => ({
  ...backend,
  open: (request) =>
    Effect.map(
      aroundEffect(backend.open(request), "model", "open", injection),
      (model) =>
        // a copy by spreading would keep what its getters said when it was opened
        Object.defineProperties({} as LoadedModel, {
          ...Object.getOwnPropertyDescriptors(model as LoadedModel),
          task: {
            value: taskWithFaults(model.task as Task<unknown, unknown>, injection),
            enumerable: true,
          },
        }) as typeof model,
    ),
})
