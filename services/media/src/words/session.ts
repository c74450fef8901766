import type { Words } from './language.ts'

interface SessionWords {
  signIn: string
  submit: string
  token: string
  tokenHint: string
  lifeHint: string
  refused: string
  ended: string
  tooMany: string
  wrongOrigin: string
  signedIn: string
  scopes: string
  signOut: string
  signOutEverywhere: string
}

export const sessionWords: Words<SessionWords> = {
  en: {
    signIn: 'Sign in with a token',
    submit: 'Sign in',
    token: 'Token',
    tokenHint: 'It begins with mh_. The operator of this service creates it.',
    lifeHint: 'This browser stays signed in for 30 days from its last use, or until the token ends.',
    refused: 'This token is unknown, expired or revoked.',
    ended: 'Your session has ended. Sign in again to go on.',
    tooMany: 'Too many attempts. Wait a minute, then sign in again.',
    wrongOrigin: 'This form was sent by another site. Sign in here.',
    signedIn: 'You are signed in',
    scopes: 'Scopes',
    signOut: 'Sign out',
    signOutEverywhere: 'Sign out all browsers of this token',
  },
  de: {
    signIn: 'Mit einem Token anmelden',
    submit: 'Anmelden',
    token: 'Token',
    tokenHint: 'Es beginnt mit mh_. Der Betreiber dieses Dienstes erstellt es.',
    lifeHint: 'Dieser Browser bleibt 30 Tage ab der letzten Nutzung angemeldet, oder bis das Token endet.',
    refused: 'Dieses Token ist unbekannt, abgelaufen oder widerrufen.',
    ended: 'Ihre Sitzung ist beendet. Melden Sie sich neu an, um fortzufahren.',
    tooMany: 'Zu viele Versuche. Warten Sie eine Minute und melden Sie sich dann an.',
    wrongOrigin: 'Dieses Formular kam von einer anderen Website. Melden Sie sich hier an.',
    signedIn: 'Sie sind angemeldet',
    scopes: 'Berechtigungen',
    signOut: 'Abmelden',
    signOutEverywhere: 'Alle Browser dieses Tokens abmelden',
  },
}
