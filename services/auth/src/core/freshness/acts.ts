// Acts that need more than a session, and their demands. They change a way in or a second factor, export the account or
// delete it. Code that does one of them does it by performActs or first calls requireSecondFactor and requireFresh
// (require-fresh.ts). Tests: ways-in.test.ts visits every endpoint, and the table of docs/reference/auth/http.md is
// made of this one.

export interface Act {
  /** Requests that do it, as the reference names them. */
  doors: readonly string[]
  /** Demands the current password where its switch is set; a recent sign-in by password does not replace it. */
  needsPassword?: true
  /** Demands a nonce where its switch is set. */
  needsNonce?: true
  /** Demands a recent sign-in, the current password or a nonce where no switch is set too: nothing undoes it. */
  always?: true
  /** Demands a recent sign-in wherever it demands a proof: its requests have no field for password or nonce. */
  signInOnly?: true
  /** Leads to a second factor: stays open to users without one where one is demanded. */
  leadsToFactor?: true
  /** Refusal of a session below the user's second factor; clients compare status and text. */
  refusal: { status: 401 | 403 | 422; message?: string }
}

const ACCOUNT = {
  status: 401,
  message: 'AAL2 session is required to update email or password when MFA is enabled.',
} as const
const PASSKEYS = {
  status: 403,
  message: 'AAL2 session is required to manage passkeys when MFA is enabled',
} as const
const ENROLL = { status: 403, message: 'AAL2 required to enroll a new factor' } as const

/** Only `updateUser` of auth-js has parameters for password and nonce; other acts also accept a recent sign-in. */
export const ACTS = {
  'new password': { doors: ['PUT /user'], needsPassword: true, needsNonce: true, refusal: ACCOUNT },
  'new e-mail address': { doors: ['PUT /user'], needsPassword: true, refusal: ACCOUNT },
  'new number': { doors: ['PUT /user'], needsPassword: true, refusal: ACCOUNT },
  'removing an address': { doors: ['PUT /user'], needsPassword: true, refusal: ACCOUNT },
  'own app_metadata': { doors: ['PUT /user'], refusal: ACCOUNT },
  'linking an identity': {
    doors: [
      'GET /user/identities/authorize',
      'POST /token?grant_type=id_token with link_identity',
      'POST /token?grant_type=web3 with link_identity',
    ],
    signInOnly: true,
    refusal: { status: 403 },
  },
  'unlinking an identity': { doors: ['DELETE /user/identities/{id}'], refusal: { status: 403 } },
  'adding a passkey': { doors: ['POST /passkeys/registration/options'], refusal: PASSKEYS },
  'removing a passkey': { doors: ['DELETE /passkeys/{id}'], refusal: PASSKEYS },
  'beginning a factor': { doors: ['POST /factors'], leadsToFactor: true, refusal: ENROLL },
  'proving a factor for the first time': { doors: ['POST /factors/{id}/verify'], leadsToFactor: true, refusal: ENROLL },
  'removing a proven factor': {
    doors: ['DELETE /factors/{id}'],
    refusal: { status: 422, message: 'AAL2 required to unenroll verified factor' },
  },
  'making recovery codes': { doors: ['POST /factors/recovery-codes'], refusal: { status: 403 } },
  'replacing recovery codes': { doors: ['POST /factors/recovery-codes/regenerate'], refusal: { status: 403 } },
  'removing recovery codes': { doors: ['DELETE /factors/recovery-codes'], refusal: { status: 403 } },
  'exporting the data': { doors: ['GET /user/export'], always: true, signInOnly: true, refusal: { status: 403 } },
  'deleting the account': {
    doors: ['DELETE /user'],
    needsPassword: true,
    always: true,
    refusal: { status: 403 },
  },
} as const satisfies Record<string, Act>

export type ActName = keyof typeof ACTS
