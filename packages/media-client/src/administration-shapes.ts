// Shapes of the answers to administrators. They agree with /openapi.json.

export interface NamedToken {
  id: string
  name: string | null
}

export interface QueueState {
  queues: { name: string; waiting: number }[]
  waiting: { token: NamedToken | null; clips: number }[]
  making: {
    clip_id: string | null
    token: NamedToken | null
    /** 0 to 1. */
    progress: number
    machine: string | null
    started_at: string
  }[]
}

export interface DeadLetter {
  id: string
  kind: 'job' | 'delivery'
  /** Queue of a job, or event of a delivery. */
  name: string
  at: string
  attempts: number
  reason: string | null
  token: NamedToken | null
  clip_id: string | null
  receiver: string | null
}

export interface StoredCheck {
  id: string
  state: 'running' | 'finished' | 'failed'
  begun_at: string
  finished_at: string | null
  machine: string | null
  operator: string | null
  result: { files: number; bytes: number; rows: number; found: Record<string, number>; findings: object[] } | null
  error: string | null
}

export interface StorageState {
  kinds: { kind: string; files: number; bytes: number }[]
  files: number
  bytes: number
  counted_at: string | null
  check: StoredCheck | null
}

export interface ServiceSettings {
  settings: {
    name: string
    value: string | null
    secret: boolean
    source: 'environment' | 'file' | 'default' | 'unset'
    given_as?: string
    type: string
    default: string | null
    meaning: string
  }[]
  warnings: string[]
  review: string[]
}

export interface AuditFilter {
  token?: string
  action?: string
  subject?: string
  /** Earliest day or time. */
  from?: string
  /** Day or time before which the acts were. */
  to?: string
}

export interface AuditEntry {
  id: string
  at: string
  token: NamedToken | null
  operator: string | null
  action: string
  subject: { kind: string; id: string | null }
  address: string | null
  details: Record<string, unknown>
}

export interface TokenDay {
  day: string
  requests: number
  clips: number
  bytes: number
}

export interface TokenSession {
  client_name: string | null
  created_at: string
  last_used_at: string
  expires_at: string
}
